//! Commands about keys of any type.

use super::numbers::integer;
use super::patterns::matches;
use super::resp::{Answer, Failure, OK, Reply};
use super::strings::{SYNTAX, invalid_end};
use super::{Bytes, Server};

pub(super) fn delete(server: &mut Server, words: &[&[u8]]) -> Answer {
    let deleted = words[1..].iter().filter(|key| server.remove(key)).count();
    Ok(Reply::Int(deleted as i64))
}

pub(super) fn exist(server: &mut Server, words: &[&[u8]]) -> Answer {
    let keys = words[1..].iter();
    let found = keys.filter(|key| server.find(key).is_some()).count();
    Ok(Reply::Int(found as i64))
}

pub(super) fn kind(server: &mut Server, words: &[&[u8]]) -> Answer {
    let entry = server.find(words[1]);
    let kind = entry.map_or("none", |entry| entry.data.kind());
    Ok(Reply::Status(kind.into()))
}

pub(super) fn count(server: &mut Server, _: &[&[u8]]) -> Answer {
    Ok(Reply::Int(server.entries.len() as i64))
}

pub(super) fn flush(server: &mut Server, words: &[&[u8]]) -> Answer {
    match words {
        [_] => {}
        [_, how] if how.eq_ignore_ascii_case(b"SYNC") || how.eq_ignore_ascii_case(b"ASYNC") => {}
        _ => return Err(SYNTAX),
    }
    server.clear();
    Ok(OK)
}

pub(super) fn left(server: &mut Server, words: &[&[u8]]) -> Answer {
    let now = server.now;
    let ends = server.find(words[1]).map(|entry| entry.ends);
    Ok(Reply::Int(match ends {
        None => -2,
        Some(None) => -1,
        Some(Some(ends)) => (ends - now).max(0),
    }))
}

pub(super) fn end_of(server: &mut Server, words: &[&[u8]]) -> Answer {
    let ends = server.find(words[1]).map(|entry| entry.ends);
    Ok(Reply::Int(ends.map_or(-2, |ends| ends.unwrap_or(-1))))
}

pub(super) fn end_in(server: &mut Server, words: &[&[u8]]) -> Answer {
    let now = server.now;
    end(server, words, now, "pexpire")
}

pub(super) fn end_at(server: &mut Server, words: &[&[u8]]) -> Answer {
    end(server, words, 0, "pexpireat")
}

fn end(server: &mut Server, words: &[&[u8]], from: i64, command: &str) -> Answer {
    let ends = integer(words[2])?;
    if words.len() > 3 {
        return Err(unknown_option(words[3]));
    }
    let ends = ends.checked_add(from).ok_or_else(|| invalid_end(command))?;
    let (now, is_replica) = (server.now, server.is_replica());
    let Some(entry) = server.find(words[1]) else {
        return Ok(Reply::Int(0));
    };
    if ends <= now && !is_replica {
        server.remove(words[1]);
    } else {
        entry.ends = Some(ends);
        server.changed(words[1]);
    }
    Ok(Reply::Int(1))
}

pub(super) fn list(server: &mut Server, words: &[&[u8]]) -> Answer {
    let now = server.now;
    let found = server.entries.iter();
    let found = found.filter(|(key, entry)| !entry.is_over(now) && matches(words[1], key));
    Ok(Reply::Array(
        found.map(|(key, _)| Reply::text(key)).collect(),
    ))
}

/// Lists all keys at once, which a server may do. The order is that of their bytes.
pub(super) fn scan(server: &mut Server, words: &[&[u8]]) -> Answer {
    let cursor = std::str::from_utf8(words[1]).ok();
    if cursor
        .and_then(|cursor| cursor.parse::<u64>().ok())
        .is_none()
    {
        return Err("ERR invalid cursor".into());
    }
    let (mut pattern, mut kind): (Option<&[u8]>, Option<Bytes>) = (None, None);
    for option in words[2..].chunks(2) {
        let &[name, value] = option else {
            return Err(SYNTAX);
        };
        match name.to_ascii_uppercase().as_slice() {
            b"MATCH" => pattern = Some(value),
            b"TYPE" => kind = Some(value.to_ascii_lowercase()),
            b"COUNT" if integer(value)? < 1 => return Err(SYNTAX),
            b"COUNT" => {}
            _ => return Err(SYNTAX),
        }
    }
    let now = server.now;
    let found = server.entries.iter().filter(|(key, entry)| {
        !entry.is_over(now)
            && pattern.is_none_or(|pattern| matches(pattern, key))
            && kind
                .as_ref()
                .is_none_or(|kind| entry.data.kind().as_bytes() == kind)
    });
    let found = found.map(|(key, _)| Reply::text(key)).collect();
    Ok(Reply::Array(vec![Reply::text("0"), Reply::Array(found)]))
}

/// Refuses an option of Redis that no part of the kit uses, so that a use of it is noticed.
pub(super) fn unknown_option(option: &[u8]) -> Failure {
    let option = String::from_utf8_lossy(option);
    format!("ERR the simulated server does not know the option {option}").into()
}
