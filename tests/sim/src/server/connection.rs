//! Sessions, and the commands about the connection itself.

use super::numbers::integer;
use super::resp::{Answer, Failure, OK, Protocol, Reply};
use super::strings::SYNTAX;
use super::tracking::Tracking;
use super::waits::Waiting;
use super::{Bytes, Server};

/// What the server knows of one connection.
#[derive(Default)]
pub(super) struct Session {
    /// Never used again, so that a new session is not taken for an earlier one of the same connection.
    pub(super) id: u64,
    pub(super) protocol: Protocol,
    name: Bytes,
    /// In the order of the subscriptions.
    pub(super) channels: Vec<Bytes>,
    pub(super) tracking: Option<Tracking>,
    /// Whether the next command's keys are watched.
    pub(super) caching: bool,
    /// `ASKING` was sent: the server runs the next command also in a slot that it imports.
    pub(super) asking: bool,
    /// The server's offset behind the last command.
    pub(super) written: u64,
    pub(super) waiting: Option<Waiting>,
    /// How often `CLIENT CACHING` was refused.
    pub(super) refused_caching: u32,
}

impl Session {
    pub(super) fn new(id: u64) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }
}

/// Stands in the table for a command that is nothing without its subcommands.
pub(super) fn container(_: &mut Server, _: &[&[u8]]) -> Answer {
    unreachable!("a subcommand was looked up, or words are missing")
}

pub(super) fn hello(server: &mut Server, words: &[&[u8]]) -> Answer {
    let mut protocol = server.session().protocol;
    let mut name = None;
    if let Some(number) = words.get(1) {
        protocol = match integer(number) {
            Ok(2) => Protocol::Resp2,
            Ok(3) => Protocol::Resp3,
            Ok(_) => return Err("NOPROTO unsupported protocol version".into()),
            Err(_) => {
                return Err("ERR Protocol version is not an integer or out of range".into());
            }
        };
        let mut rest = &words[2..];
        loop {
            rest = match rest {
                [] => break,
                [option, user, _password, behind @ ..] if is(option, "AUTH") => {
                    login(user)?;
                    behind
                }
                [option, text, behind @ ..] if is(option, "SETNAME") => {
                    name = Some(checked_name(text)?);
                    behind
                }
                [option, ..] => {
                    let option = String::from_utf8_lossy(option);
                    return Err(format!("ERR Syntax error in HELLO option '{option}'").into());
                }
            };
        }
    }
    let session = server.session();
    session.protocol = protocol;
    if let Some(name) = name {
        session.name = name;
    }
    let id = session.id as i64;
    let number = match protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    };
    let is_sentinel = server.sentinel.is_some();
    let mode = if is_sentinel {
        "sentinel"
    } else {
        server.mode()
    };
    let mut pairs = vec![
        ("server", Reply::text(server.version.words().product)),
        ("version", Reply::text(server.version.of_product())),
        ("proto", Reply::Int(number)),
        ("id", Reply::Int(id)),
        ("mode", Reply::text(mode)),
    ];
    if !is_sentinel {
        pairs.push(("role", Reply::text(server.role_name())));
    }
    pairs.push(("modules", Reply::Array(Vec::new())));
    let pairs = pairs
        .into_iter()
        .map(|(name, value)| (Reply::text(name), value));
    Ok(Reply::Map(pairs.collect()))
}

/// The only user is the default one, without a password.
fn login(user: &[u8]) -> Result<(), Failure> {
    match user {
        b"default" => Ok(()),
        _ => Err("WRONGPASS invalid username-password pair or user is disabled.".into()),
    }
}

pub(super) fn auth(_: &mut Server, words: &[&[u8]]) -> Answer {
    match words {
        [_, _] => Err(
            "ERR AUTH <password> called without any password configured for the default \
             user. Are you sure your configuration is correct?"
                .into(),
        ),
        [_, user, _] => login(user).map(|()| OK),
        _ => Err(SYNTAX),
    }
}

/// There is one database.
pub(super) fn select(server: &mut Server, words: &[&[u8]]) -> Answer {
    match integer(words[1])? {
        0 => Ok(OK),
        _ if server.cluster.is_some() => Err("ERR SELECT is not allowed in cluster mode".into()),
        1..16 => Err("ERR the simulated server has one database".into()),
        _ => Err("ERR DB index is out of range".into()),
    }
}

pub(super) fn ping(server: &mut Server, words: &[&[u8]]) -> Answer {
    match words {
        [_] | [_, _] if server.is_only_listening() => {
            let text = words.get(1).copied().unwrap_or_default();
            Ok(Reply::Array(vec![Reply::text("pong"), Reply::text(text)]))
        }
        [_] => Ok(Reply::Status("PONG".into())),
        [_, text] => Ok(Reply::text(text)),
        _ => Err("ERR wrong number of arguments for 'ping' command".into()),
    }
}

pub(super) fn echo(_: &mut Server, words: &[&[u8]]) -> Answer {
    Ok(Reply::text(words[1]))
}

pub(super) fn id(server: &mut Server, _: &[&[u8]]) -> Answer {
    Ok(Reply::Int(server.session().id as i64))
}

pub(super) fn name(server: &mut Server, _: &[&[u8]]) -> Answer {
    let name = &server.session().name;
    Ok(match name.is_empty() {
        true => Reply::Null,
        false => Reply::text(name),
    })
}

pub(super) fn rename(server: &mut Server, words: &[&[u8]]) -> Answer {
    server.session().name = checked_name(words[2])?;
    Ok(OK)
}

fn checked_name(name: &[u8]) -> Result<Bytes, Failure> {
    if name.iter().all(u8::is_ascii_graphic) {
        return Ok(name.to_vec());
    }
    Err("ERR Client names cannot contain spaces, newlines or special characters.".into())
}

pub(super) fn tracking(server: &mut Server, words: &[&[u8]]) -> Answer {
    let mut wanted = Tracking::default();
    for option in &words[3..] {
        match option.to_ascii_uppercase().as_slice() {
            b"OPTIN" => wanted.asks_first = true,
            b"NOLOOP" => wanted.skips_own = true,
            _ => return Err(SYNTAX),
        }
    }
    let session = server.session();
    if is(words[2], "OFF") {
        session.tracking = None;
        session.caching = false;
        return Ok(OK);
    }
    if !is(words[2], "ON") {
        return Err(SYNTAX);
    }
    session.tracking = Some(wanted);
    Ok(OK)
}

pub(super) fn caching(server: &mut Server, words: &[&[u8]]) -> Answer {
    let session = server.session();
    let Some(tracking) = session.tracking else {
        return Err(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode \
             with OPTIN or OPTOUT mode enabled"
                .into(),
        );
    };
    if is(words[2], "NO") {
        return Err(
            "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.".into(),
        );
    }
    if !is(words[2], "YES") {
        return Err(SYNTAX);
    }
    if !tracking.asks_first {
        return Err(
            "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.".into(),
        );
    }
    session.caching = true;
    Ok(OK)
}

fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}
