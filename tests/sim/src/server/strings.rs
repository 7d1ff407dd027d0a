//! `GET`, `MGET` and `SET`.

use std::borrow::Cow;

use super::Server;
use super::keyspace::{Data, Entry};
use super::numbers::integer;
use super::resp::{Answer, Failure, OK, Reply};

pub(super) const SYNTAX: Failure = Cow::Borrowed("ERR syntax error");

pub(super) fn get(server: &mut Server, words: &[&[u8]]) -> Answer {
    let text = server.text(words[1])?;
    Ok(text.map_or(Reply::Null, Reply::text))
}

pub(super) fn get_several(server: &mut Server, words: &[&[u8]]) -> Answer {
    let keys = words[1..].iter();
    let texts = keys.map(|key| match server.text(key) {
        Ok(Some(text)) => Reply::text(text),
        // A key of another type counts as absent.
        Ok(None) | Err(_) => Reply::Null,
    });
    Ok(Reply::Array(texts.collect()))
}

/// The end that a `SET` gives the key.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Never,
    Kept,
    At(i64),
}

/// When a `SET` does anything.
#[derive(Clone, Copy, PartialEq)]
enum When {
    Always,
    Absent,
    Present,
}

pub(super) fn set(server: &mut Server, words: &[&[u8]]) -> Answer {
    let (mut when, mut end, mut asks) = (When::Always, End::Never, false);
    // The time is read when the syntax of all is checked.
    let mut time: Option<(&[u8], Unit)> = None;
    let mut rest = words[3..].iter();
    while let Some(option) = rest.next() {
        let unit = Unit::of(option);
        match option.to_ascii_uppercase().as_slice() {
            b"NX" if when == When::Always => when = When::Absent,
            b"XX" if when == When::Always => when = When::Present,
            b"NX" if when == When::Absent => {}
            b"XX" if when == When::Present => {}
            b"GET" => asks = true,
            b"KEEPTTL" if time.is_none() => end = End::Kept,
            _ => match (unit, rest.next()) {
                (Some(unit), Some(number))
                    if time.is_none_or(|(_, before)| before == unit) && end != End::Kept =>
                {
                    time = Some((*number, unit));
                }
                _ => return Err(SYNTAX),
            },
        }
    }
    if asks && when == When::Absent && !server.version.is_7() {
        return Err(SYNTAX);
    }
    if let Some((number, unit)) = time {
        let at = unit.end(integer(number)?, server.now);
        end = End::At(at.ok_or_else(|| invalid_end("set"))?);
    }
    let key = words[1];
    let before = match asks {
        true => Some(server.text(key)?.map_or(Reply::Null, Reply::text)),
        false => None,
    };
    let old_end = server.find(key).map(|entry| entry.ends);
    let refused = match when {
        When::Always => false,
        When::Absent => old_end.is_some(),
        When::Present => old_end.is_none(),
    };
    if refused {
        return Ok(before.unwrap_or(Reply::Null));
    }
    let ends = match end {
        End::Never => None,
        End::Kept => old_end.flatten(),
        End::At(ends) => Some(ends),
    };
    let is_over = matches!(end, End::At(ends) if ends <= server.now);
    if is_over && server.version.sets_nothing_that_is_over() && !server.is_replica() {
        server.remove(key);
        return Ok(before.unwrap_or(OK));
    }
    let data = Data::Text(words[2].to_vec());
    server.put(key, Entry { data, ends });
    Ok(before.unwrap_or(OK))
}

/// How a time is given.
#[derive(Clone, Copy, PartialEq)]
struct Unit {
    millis: i64,
    is_span: bool,
}

impl Unit {
    fn of(option: &[u8]) -> Option<Self> {
        let (millis, is_span) = match option.to_ascii_uppercase().as_slice() {
            b"EX" => (1_000, true),
            b"PX" => (1, true),
            b"EXAT" => (1_000, false),
            b"PXAT" => (1, false),
            _ => return None,
        };
        Some(Self { millis, is_span })
    }

    /// Returns the end in milliseconds of Unix time, if it is one.
    fn end(self, number: i64, now: i64) -> Option<i64> {
        let millis = number.checked_mul(self.millis)?;
        let end = if self.is_span {
            millis.checked_add(now)?
        } else {
            millis
        };
        (number > 0).then_some(end)
    }
}

pub(super) fn invalid_end(command: &str) -> Failure {
    format!("ERR invalid expire time in '{command}' command").into()
}
