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
use super::reply::{owner, refusal_at_first, time_above};
use super::send_error::{Trouble, failure, trouble};
use super::{RedisStore, in_millis};
use crate::base::token::Token;
use crate::store::{Acquire, Failure, Outcome};

impl RedisStore {
    /// Returns `SET` of the lock, which answers the value of the key, `GET` of the mark, and `TIME`.
    ///
    /// They do not ask when the owner's lease ends, because a free key has no owner: the answer would cost every
    /// acquire as much as `TIME` does. A cooldown's end stands in its value.
    ///
    /// Redis 6.2 knows no `SET … NX GET`: there a `GET` of the lock stands behind `SET`.
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
        let mut commands = Pipeline::with_capacity(4);
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
        commands.add_command(marked).add_command(time);
        commands
    }

    /// Sends them, and once more where it turns out that the server is an older one.
    pub(super) async fn ask_first(
        &self,
        acquire: &Acquire,
        commands: &Pipeline,
        on: &Connection,
    ) -> Result<First, Trouble> {
        let answers = on.send_many(commands, commands.len()).await?;
        self.understood(answers, acquire, on).await
    }

    async fn understood(
        &self,
        mut answers: Vec<Value>,
        acquire: &Acquire,
        on: &Connection,
    ) -> Result<First, Trouble> {
        if let [Value::ServerError(error), _, _] = answers.as_slice()
            && error
                .details()
                .is_some_and(|why| why.starts_with("syntax error"))
        {
            self.sets_and_gets.store(false, Ordering::Relaxed);
            let commands = self.first_attempt(acquire);
            answers = on.send_many(&commands, commands.len()).await?;
        }
        First::of(answers).ok_or_else(|| Trouble::Failed(Failure::not_understood()))
    }

    pub(super) async fn attempt(
        &self,
        acquire: &Acquire,
        commands: &Pipeline,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let answers = on.send_many(commands, commands.len()).await?;
        // The usual case needs no future of its own.
        if let [Value::Nil, mark, time] = answers.as_slice()
            && let Some(fence) = time_above(mark, time, on.least_mark())
        {
            return Ok(Outcome::Granted(fence));
        }
        Box::pin(self.attempt_answered(answers, acquire, on)).await
    }

    async fn attempt_answered(
        &self,
        answers: Vec<Value>,
        acquire: &Acquire,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let First { set, mark, time } = &self.understood(answers, acquire, on).await?;
        match set {
            Set::Done => match time_above(mark, time, on.least_mark()) {
                Some(fence) => Ok(Outcome::Granted(fence)),
                None => self.set_without_a_number(acquire, mark, time, on).await,
            },
            Set::Taken(value) => match another_owner(value, acquire.token) {
                Some(owner) => Ok(Outcome::Busy(refusal_at_first(&owner, time, acquire.ttl))),
                None => self.refused_by_nobody(acquire, value, on).await,
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
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        if let Value::ServerError(error) = value {
            return Err(trouble(error.clone().into()));
        }
        // Ours by an earlier send, or released between two of the commands.
        self.acquire_by_script(acquire, on).await
    }
}

/// What the answers to a first attempt say.
pub(super) struct First {
    pub(super) set: Set,
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
        let (time, mark) = (answers.pop()?, answers.pop()?);
        let mut before = answers.into_iter();
        let set = match (before.next()?, before.next(), before.next()) {
            (Value::ServerError(error), ..) => Set::Failed(error),
            (Value::Nil, None, _) | (Value::Okay, Some(_), None) => Set::Done,
            (value, None, _) | (Value::Nil, Some(value), None) => Set::Taken(value),
            _ => return None,
        };
        Some(Self { set, mark, time })
    }
}

/// Returns the owner of the key. `None`: it is the token itself, by an earlier send, or the key went between
/// two of the commands.
pub(super) fn another_owner(value: &Value, token: Token) -> Option<Cow<'_, str>> {
    owner(value).filter(|owner| owner != token.text().as_str())
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
        let rest = [Value::Nil, Value::Array(vec![])];
        let set = |before: &[Value]| {
            let answers = [before, &rest].concat();
            First::of(answers).map(|first| {
                assert_eq!([&first.mark, &first.time], [&rest[0], &rest[1]]);
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
        assert!(First::of(rest.to_vec()).is_none());
    }

    #[test]
    fn the_token_itself_and_a_key_that_went_are_no_other_owner() {
        let token = |text| Token::parse(text).expect("a token");
        let ours = "0123456789abcdef/0123456789abcdef0123456789abcdef";
        let other = "0123456789abcdef/00000000000000000000000000000001";
        let value = |text: &str| Value::BulkString(text.into());
        assert_eq!(
            another_owner(&value(other), token(ours)).as_deref(),
            Some(other)
        );
        assert_eq!(another_owner(&value(ours), token(ours)), None);
        assert_eq!(another_owner(&Value::Nil, token(ours)), None, "gone");
    }
}
