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
use std::sync::atomic::Ordering;

use redis::{Cmd, Pipeline, ServerError, Value};

use super::connection::Connection;
use super::reply::{owner, refusal, time_above};
use super::send_error::{Trouble, failure, trouble};
use super::{RedisStore, in_millis};
use crate::base::token::Token;
use crate::store::{Acquire, Failure, Outcome};

/// A `PTTL` of a key that is not there any more.
const GONE: i64 = -2;

impl RedisStore {
    /// `SET` of the lock, which answers what stands there, `PTTL` of the lock, `GET` of the mark, and `TIME`.
    ///
    /// Redis 6.2 knows no `SET … NX GET`: there a `GET` stands behind it.
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
        let mut set = of_the_lock("SET", 5, Token::LENGTH + 19);
        set.arg(acquire.token.text().as_bytes()).arg("NX");
        let mut commands = Pipeline::with_capacity(5);
        if self.sets_and_gets.load(Ordering::Relaxed) {
            set.arg("GET").arg("PX").arg(in_millis(acquire.ttl));
            commands.add_command(set);
        } else {
            set.arg("PX").arg(in_millis(acquire.ttl));
            commands
                .add_command(set)
                .add_command(of_the_lock("GET", 0, 0));
        }
        let mut marked = Cmd::with_capacity(2, 3 + mark.len());
        marked.arg("GET").arg(&*mark);
        let mut time = Cmd::with_capacity(1, 4);
        time.arg("TIME");
        commands
            .add_command(of_the_lock("PTTL", 0, 0))
            .add_command(marked)
            .add_command(time);
        commands
    }

    /// Sends them, and once more where it turns out that the server is an older one.
    pub(super) async fn ask_first(
        &self,
        acquire: &Acquire,
        commands: &Pipeline,
        on: &Connection,
    ) -> Result<First, Trouble> {
        let mut answers = on.send_many(commands, commands.len()).await?;
        if let [Value::ServerError(error), _, _, _] = answers.as_slice()
            && error
                .details()
                .is_some_and(|why| why.starts_with("syntax error"))
        {
            self.sets_and_gets.store(false, Ordering::Relaxed);
            let commands = self.first_attempt(acquire);
            answers = Box::pin(on.send_many(&commands, commands.len())).await?;
        }
        First::of(answers).ok_or_else(|| Trouble::Failed(Failure::not_understood()))
    }

    pub(super) async fn attempt(
        &self,
        acquire: &Acquire,
        commands: &Pipeline,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let First {
            set,
            left,
            mark,
            time,
        } = &self.ask_first(acquire, commands, on).await?;
        match set {
            Set::Done => match time_above(mark, time, on.least_mark()) {
                Some(fence) => Ok(Outcome::Granted(fence)),
                None => Box::pin(self.set_without_a_number(acquire, mark, time, on)).await,
            },
            Set::Taken(value) => match another_owner(value, left, acquire.token) {
                // It does not stand in the queue.
                Some((owner, left)) => Ok(Outcome::Busy(refusal(&owner, left, false))),
                None => Box::pin(self.refused_by_nobody(acquire, value, left, on)).await,
            },
            Set::Failed(error) => Err(elsewhere(trouble(error.clone().into()), mark)),
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

/// What the answers to a first attempt say.
pub(super) struct First {
    pub(super) set: Set,
    pub(super) left: Value,
    pub(super) mark: Value,
    pub(super) time: Value,
}

/// What became of the `SET`.
pub(super) enum Set {
    Done,
    /// What stands in the key.
    Taken(Value),
    Failed(ServerError),
}

impl First {
    /// `None`: they make no sense.
    fn of(mut answers: Vec<Value>) -> Option<Self> {
        let (time, mark, left) = (answers.pop()?, answers.pop()?, answers.pop()?);
        let mut before = answers.into_iter();
        let set = match (before.next()?, before.next(), before.next()) {
            (Value::ServerError(error), ..) => Set::Failed(error),
            (Value::Nil, None, _) | (Value::Okay, Some(_), None) => Set::Done,
            (value, None, _) | (Value::Nil, Some(value), None) => Set::Taken(value),
            _ => return None,
        };
        Some(Self {
            set,
            left,
            mark,
            time,
        })
    }
}

/// Who has the key, and for how many milliseconds more; `None` if that is the token itself, by an earlier
/// send, or the key went between two of the commands.
pub(super) fn another_owner<'a>(
    value: &'a Value,
    left: &Value,
    token: Token,
) -> Option<(Cow<'a, str>, i64)> {
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
        Trouble::Elsewhere(elsewhere) => {
            Trouble::Elsewhere(elsewhere.with_mark(super::reply::number(mark)))
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
    fn what_was_set_and_what_stands_there_is_understood_of_both_kinds_of_servers() {
        let text = |text: &str| Value::BulkString(text.into());
        let rest = [Value::Int(7), Value::Nil, Value::Array(vec![])];
        let set = |before: &[Value]| {
            let answers = [before, &rest].concat();
            First::of(answers).map(|first| {
                assert_eq!(
                    [&first.left, &first.mark, &first.time],
                    [&rest[0], &rest[1], &rest[2]]
                );
                match first.set {
                    Set::Done => "done".to_owned(),
                    Set::Taken(value) => format!("taken by {:?}", owner(&value)),
                    Set::Failed(_) => "failed".to_owned(),
                }
            })
        };
        let done = Some("done".to_owned());
        assert_eq!(set(&[Value::Nil]), done);
        assert_eq!(set(&[Value::Okay, text("ours")]), done);
        let taken = Some("taken by Some(\"other\")".to_owned());
        assert_eq!(set(&[text("other")]), taken);
        assert_eq!(set(&[Value::Nil, text("other")]), taken);
        let gone = Some("taken by None".to_owned());
        assert_eq!(
            set(&[Value::Nil, Value::Nil]),
            gone,
            "not set, and nothing there"
        );
        assert_eq!(set(&[]), None);
        assert_eq!(set(&[Value::Int(1), text("other")]), None);
        assert!(First::of(rest[..2].to_vec()).is_none());
    }

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
