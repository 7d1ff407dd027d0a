//! Errors on the way to an answer, and their messages.

use redis::{ErrorKind as RedisKind, RedisError, ServerError, ServerErrorKind, Value};

use super::tls;
use crate::store::Failure;

/// Says why a send brought no answer that counts.
#[derive(Clone, Debug)]
pub(in crate::store::redis) enum SendError {
    /// The connection is unusable. The command may have arrived.
    Broken(RedisError),
    /// The server does not know the script.
    NoScript,
    /// Another node of the cluster has the key. Nothing was done.
    Elsewhere(RedisError),
    /// The keys of one lock are moving from one node to another. Nothing was done.
    Moving(RedisError),
    /// The lock is this token's, and its high-water mark may be on another node. The value is the answer to `TIME`.
    Unfenced(Value),
    /// This server cannot serve at the moment, but another one may. Nothing was done.
    Unfit(Failure),
    /// Any other error.
    Failed(Failure),
}

/// Sorts an error by its remedy.
pub(in crate::store::redis) fn classify(error: RedisError) -> SendError {
    let error = of_the_command(&error).unwrap_or(error);
    match error.kind() {
        RedisKind::Server(kind) => match kind {
            ServerErrorKind::NoScript => SendError::NoScript,
            ServerErrorKind::Moved | ServerErrorKind::Ask => SendError::Elsewhere(error),
            ServerErrorKind::TryAgain => SendError::Moving(error),
            ServerErrorKind::ReadOnly
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::BusyLoading => SendError::Unfit(failure(error)),
            _ => SendError::Failed(failure(error)),
        },
        RedisKind::Io | RedisKind::Parse => SendError::Broken(error),
        _ => SendError::Failed(failure(error)),
    }
}

/// The error of the command that failed within a script. Redis 6.2 wraps it into one of the script:
/// `ERR Error running script (call to f_…): @user_script:9: @user_script: 9: -READONLY You …`
fn of_the_command(error: &RedisError) -> Option<RedisError> {
    let said = [error.code()?, " ", error.detail()?].concat();
    let (_, behind) = said.rsplit_once("@user_script:")?;
    let (_, command) = behind.split_once(": ")?;
    let command = command.trim_start_matches('-');
    let (code, _) = command.split_once(' ')?;
    // Errors without a code, as those of the ACL, are recognized by their words.
    if !code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    match redis::parse_redis_value(format!("-{command}\r\n").as_bytes()) {
        Ok(Value::ServerError(error)) => Some(error.into()),
        _ => None,
    }
}

impl SendError {
    /// The error that an answer stands for, if it is one.
    pub(in crate::store::redis) fn of(answer: &Value) -> Option<Self> {
        match answer {
            Value::ServerError(error) => Some(classify(error.clone().into())),
            _ => None,
        }
    }

    /// The failure to report if there is no remedy.
    pub(in crate::store::redis) fn into_failure(self) -> Failure {
        match self {
            SendError::Broken(error) | SendError::Moving(error) => failure(error),
            SendError::Elsewhere(error) => failure(error),
            SendError::Unfit(failure) | SendError::Failed(failure) => failure,
            SendError::NoScript => Failure::not_understood(),
            // The key is set.
            SendError::Unfenced(_) => Failure {
                ambiguous: true,
                ..Failure::not_understood()
            },
        }
    }
}

/// The failure of a connection that was never made, and so has carried nothing.
pub(in crate::store::redis) fn not_connected(error: RedisError) -> Failure {
    if let Some(what_to_do) = tls::refusal(&error) {
        let mut refused = Failure::misconfigured(what_to_do);
        refused.error = refused.error.with_source(error);
        return refused;
    }
    Failure {
        ambiguous: false,
        ..failure(error)
    }
}

const ONE_NODE: &str =
    "this server is one node of a cluster; connect with redis-cluster://host:port";

/// The failure for commands that the user's ACL forbids; empty: unknown ones.
pub(in crate::store::redis) fn forbidden<R: AsRef<str>>(rights: &[R]) -> Failure {
    let rights: Vec<&str> = rights.iter().map(AsRef::as_ref).collect();
    let rights = if rights.is_empty() {
        "a command or key of the lock".to_owned()
    } else {
        rights.join(", ")
    };
    Failure::misconfigured(format!(
        "the server's ACL forbids this user what a lock needs: {rights}; allow it \
         +@read +@write +@scripting +@connection +publish +subscribe +time +info, \
         the keys ~<namespace>* and the channels &<namespace>!m:*; with sentinels also +role, \
         in a cluster +cluster|info +cluster|slots"
    ))
}

pub(in crate::store::redis) fn is_forbidden(error: &ServerError) -> bool {
    error.code() == "NOPERM" || error.details().is_some_and(is_of_acl)
}

/// Recognizes an ACL error within a script, or before a database is chosen. Its code is that of any error.
fn is_of_acl(why: &str) -> bool {
    why.contains("executing the script")
        || why.contains("ACL failure")
        || why.contains("no permissions to")
}

/// Returns whether the server has refused the user or the password.
pub(in crate::store::redis) fn is_login_refused(error: &RedisError) -> bool {
    error.kind() == RedisKind::AuthenticationFailed
        || matches!(error.code(), Some("WRONGPASS" | "NOAUTH"))
}

/// The failure that a server's error stands for.
pub(in crate::store::redis) fn failure(error: RedisError) -> Failure {
    let code = error.code().unwrap_or_default().to_owned();
    let why = error.detail().unwrap_or_default().to_owned();
    // The server's own words are not passed on, because newer servers name the user in them.
    let permanent = |message: &'static str| Failure::misconfigured(message);
    match (error.kind(), code.as_str()) {
        _ if is_login_refused(&error) => {
            permanent("the server does not accept the user or password of the URL")
        }
        (RedisKind::Server(ServerErrorKind::NoPerm), _) | (_, "NOPERM") => forbidden::<&str>(&[]),
        _ if is_of_acl(&why) => forbidden::<&str>(&[]),
        _ if why.starts_with("DB index is out of range") => permanent(
            "the server has no database of the number that stands in the URL; write another one, or 0",
        ),
        _ if why.starts_with("SELECT is not allowed in cluster mode") => permanent(ONE_NODE),
        (_, "WRONGTYPE") => permanent(
            "a key of the lock holds data of another type; lock another key, or choose another namespace",
        ),
        (_, "LOCKMARK") => permanent(
            "the key `<namespace>!f` (`<namespace>!r` on a node of a quorum), from which fencing tokens are \
             counted, holds something else than a number below 9000000000000000, which the clock passes in \
             the year 2255; delete it, so that tokens follow the server's clock again, or choose another \
             namespace",
        ),
        (
            RedisKind::Server(
                ServerErrorKind::CrossSlot | ServerErrorKind::Moved | ServerErrorKind::Ask,
            ),
            _,
        ) => permanent(ONE_NODE),
        (RedisKind::RESP3NotSupported, _) => {
            permanent("the server is older than Redis 6.2; use 6.2 or later, or Valkey")
        }
        (RedisKind::InvalidClientConfig, _) => {
            permanent("the settings of the Redis client are not usable")
        }
        // Refused before anything was written: OOM, READONLY, LOADING, MASTERDOWN, NOREPLICAS, BUSY …
        (RedisKind::Server(_) | RedisKind::Extension, _) => Failure::refused(format!(
            "the server cannot serve the lock at the moment ({})",
            if code.is_empty() {
                "unknown error"
            } else {
                &code
            }
        )),
        _ => {
            let mut unanswered = Failure::unanswered("the connection to the server failed");
            unanswered.error = unanswered.error.with_source(error);
            unanswered
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// The server's error line, as it stands behind `-`.
    fn sorted(line: &str) -> SendError {
        let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        SendError::of(&answer.expect("an error reply")).expect("an error")
    }

    #[test]
    fn the_error_of_a_command_within_a_script_of_redis_6_2_is_that_of_the_command() {
        let call = "ERR Error running script (call to f_0a1b): @user_script:9: ";
        let wrapped = |error: &str| sorted(&format!("{call}{error}"));
        let another_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
        let read_only = "@user_script: 9: -READONLY You can't write against a read only replica.";
        let full = "@user_script: 9: -OOM command not allowed when used memory > 'maxmemory'.";
        let may_not =
            "@user_script: 9: The user executing the script can't run this command or subcommand";
        let kind = |error: SendError| error.into_failure().error.kind();
        assert_eq!(kind(wrapped(another_type)), ErrorKind::Misconfigured);
        assert_eq!(kind(wrapped(may_not)), ErrorKind::Misconfigured);
        assert!(matches!(wrapped(read_only), SendError::Unfit(_)));
        // A script may pass the error on.
        assert!(matches!(sorted(read_only), SendError::Unfit(_)));
        let full = wrapped(full).into_failure().error;
        assert_eq!(full.kind(), ErrorKind::Unavailable);
        assert!(full.to_string().contains("(OOM)"), "{full}");
    }

    #[test]
    fn an_error_of_later_servers_within_a_script_is_that_of_the_command() {
        let line = "READONLY You can't write against a read only replica. script: 0a1b, on \
                    @user_script:9.";
        assert!(matches!(sorted(line), SendError::Unfit(_)));
    }
}
