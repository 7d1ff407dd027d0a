//! A first attempt on a lock: native commands in one write.
//!
//! They cost the server a fourth of what a script that does the same would. Each of them is about one key, so that
//! on a cluster they are answered while a slot is on its way from one node to another.
//!
//! Others' commands may come between them, which changes nothing. The mark and the clock are read behind
//! the `SET`, while the key is ours: whoever had it before has raised the mark by then, or has lost the key by
//! its end, which the clock has passed. Should our own end come in between, the answer comes too late to be
//! believed.

use std::borrow::Cow;

use redis::{Cmd, Pipeline, Value};

use super::answers::{not_understood, owner, refusal, time_above};
use super::connection::Connection;
use super::trouble::{Trouble, failure, trouble};
use super::{RedisStore, in_millis};
use crate::store::{Acquire, Failure, Outcome};
use crate::token::Token;

/// The answers to `SET`, `GET` and `PTTL` of the lock, `GET` of the mark, and `TIME`.
pub(super) const ANSWERS: usize = 5;

/// A `PTTL` of a key that is not there any more.
const GONE: i64 = -2;

impl RedisStore {
    pub(super) fn first_attempt(&self, acquire: &Acquire) -> Pipeline {
        let key = &acquire.key;
        let mark = self.names.mark_for(key);
        // The mark's name is longer than the namespace.
        let name = mark.len() + key.len();
        let of_the_lock = |verb: &str, arguments: usize, bytes: usize| {
            let mut command = Cmd::with_capacity(2 + arguments, verb.len() + name + bytes);
            command.arg(verb);
            self.names.push_lock(key, &mut command);
            command
        };
        let mut set = of_the_lock("SET", 4, Token::LENGTH + 16);
        set.arg(acquire.token.text().as_bytes()).arg("NX");
        set.arg("PX").arg(in_millis(acquire.ttl));
        let mut marked = Cmd::with_capacity(2, 3 + mark.len());
        marked.arg("GET").arg(&*mark);
        let mut time = Cmd::with_capacity(1, 4);
        time.arg("TIME");
        let mut commands = Pipeline::with_capacity(ANSWERS);
        commands
            .add_command(set)
            .add_command(of_the_lock("GET", 0, 0))
            .add_command(of_the_lock("PTTL", 0, 0))
            .add_command(marked)
            .add_command(time);
        commands
    }

    pub(super) async fn attempt(
        &self,
        acquire: &Acquire,
        commands: &Pipeline,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let answers = on.send_many(commands, ANSWERS).await?;
        let [set, value, left, mark, time] = answers.as_slice() else {
            return Ok(not_understood());
        };
        match set {
            Value::Okay => match time_above(mark, time, on.least_mark()) {
                Some(fence) => Ok(Outcome::Granted(fence)),
                None => Box::pin(self.set_without_a_number(acquire, mark, time, on)).await,
            },
            Value::Nil => match another_owner(value, left, acquire.token) {
                Some((owner, left)) => {
                    let pushed = self.will_tell(acquire.token, on);
                    Ok(Outcome::Busy(refusal(&owner, left, pushed)))
                }
                None => Box::pin(self.refused_by_nobody(acquire, value, left, on)).await,
            },
            Value::ServerError(error) => Err(elsewhere(trouble(error.clone().into()), mark)),
            _ => Ok(not_understood()),
        }
    }

    /// The key is set, but which fencing token that makes is not known: whatever does not end in a grant
    /// must be undone.
    async fn set_without_a_number(
        &self,
        acquire: &Acquire,
        mark: &Value,
        time: &Value,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        if let (Value::ServerError(error), _) | (_, Value::ServerError(error)) = (mark, time) {
            return Ok(Outcome::Failed(to_be_undone(failure(error.clone().into()))));
        }
        // The clock is behind the mark: the script counts on from there.
        match self.acquire_by_script(acquire, on).await {
            Ok(Outcome::Failed(failure)) | Err(Trouble::Failed(failure)) => {
                Ok(Outcome::Failed(to_be_undone(failure)))
            }
            other => other,
        }
    }

    /// The key is taken, but not by another owner that can be named.
    async fn refused_by_nobody(
        &self,
        acquire: &Acquire,
        value: &Value,
        left: &Value,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        if let (Value::ServerError(error), _) | (_, Value::ServerError(error)) = (value, left) {
            return Err(trouble(error.clone().into()));
        }
        // Ours by an earlier send, or released between two of the commands.
        self.acquire_by_script(acquire, on).await
    }
}

/// Who has the key, and for how many milliseconds more; `None` if that is the token itself, by an earlier
/// send, or the key went between two of the commands.
fn another_owner<'a>(value: &'a Value, left: &Value, token: Token) -> Option<(Cow<'a, str>, i64)> {
    match (owner(value)?, left) {
        (owner, Value::Int(left)) if *left != GONE && owner != token.text().as_str() => {
            Some((owner, *left))
        }
        _ => None,
    }
}

pub(super) fn to_be_undone(failure: Failure) -> Failure {
    Failure {
        ambiguous: true,
        ..failure
    }
}

/// Another node has the lock, and may not have the mark yet: what it is goes along.
pub(super) fn elsewhere(trouble: Trouble, mark: &Value) -> Trouble {
    match trouble {
        #[cfg(feature = "cluster")]
        Trouble::Elsewhere(elsewhere) => {
            Trouble::Elsewhere(elsewhere.with_mark(super::answers::number(mark)))
        }
        trouble => {
            let _ = mark;
            trouble
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_went_between_two_commands_is_nobodys() {
        let token = |text| Token::parse(text).expect("a token");
        let ours = "0123456789abcdef/0123456789abcdef0123456789abcdef";
        let other = "0123456789abcdef/00000000000000000000000000000001";
        let found = |value: &str, left| {
            let value = Value::BulkString(value.into());
            let found = another_owner(&value, &left, token(ours));
            found.map(|(owner, left)| (owner.into_owned(), left))
        };
        let for_now = Some((other.to_owned(), 5));
        assert_eq!(found(other, Value::Int(5)), for_now);
        let for_ever = Some((other.to_owned(), -1));
        assert_eq!(found(other, Value::Int(-1)), for_ever);
        assert_eq!(found(other, Value::Int(-2)), None, "gone");
        assert_eq!(found(other, Value::Nil), None, "no answer");
        assert_eq!(found(ours, Value::Int(5)), None, "by an earlier send");
        assert_eq!(
            another_owner(&Value::Nil, &Value::Int(-2), token(ours)),
            None
        );
    }
}
