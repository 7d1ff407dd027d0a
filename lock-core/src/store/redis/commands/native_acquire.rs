//! A first attempt on a lock: native commands in one write.
//!
//! They cost the server a fourth of a script that does the same. Each of them is about one key, so that a
//! cluster answers them while a slot is moving. A script is for an acquire that queues, supersedes a lease, may
//! have been sent before, or meets a clock behind the high-water mark.
//!
//! Commands of other clients may come between them, which changes nothing. The mark and the clock are read
//! behind the `SET`, while the key is this token's. The previous owner has raised the mark by then, or has lost
//! the key by its end, which the clock has passed. If this lease ends in between, the answer comes too late to
//! be believed.

use std::sync::atomic::Ordering;

use redis::{Cmd, Pipeline, ServerError, Value};

use super::RedisStore;
use crate::base::fence::FencingToken;
use crate::base::token::Token;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::{is_shared, owner, refusal_at_first, time_above};
use crate::store::redis::wire::send_error::{SendError, classify, failure};
use crate::store::redis::wire::spans::in_millis;
use crate::store::{AcquireCommand, Failure, Outcome};

impl RedisStore {
    /// Returns `SET` of the lock, which answers the value of the key, `GET` of the mark, and `TIME`.
    ///
    /// They do not ask when the owner's lease ends, because a free key has no owner, and the answer would cost
    /// every acquire as much as `TIME` does. A cooldown's end is in its value.
    ///
    /// Redis 6.2 knows no `SET … NX GET`: there a `GET` of the lock follows the `SET`.
    pub(super) fn native_commands(&self, acquire: &AcquireCommand) -> Pipeline {
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

    /// Sends the commands, and again if the server turns out to be an older one.
    pub(super) async fn send_native(
        &self,
        acquire: &AcquireCommand,
        commands: &Pipeline,
        on: &Connection,
    ) -> Result<NativeAnswers, SendError> {
        let answers = on.send_many(commands, commands.len()).await?;
        self.understood(answers, acquire, on).await
    }

    async fn understood(
        &self,
        mut answers: Vec<Value>,
        acquire: &AcquireCommand,
        on: &Connection,
    ) -> Result<NativeAnswers, SendError> {
        if let [Value::ServerError(error), _, _] = answers.as_slice()
            && error
                .details()
                .is_some_and(|why| why.starts_with("syntax error"))
        {
            self.sets_and_gets.store(false, Ordering::Relaxed);
            let commands = self.native_commands(acquire);
            answers = on.send_many(&commands, commands.len()).await?;
        }
        NativeAnswers::of(answers).ok_or_else(|| SendError::Failed(Failure::not_understood()))
    }

    pub(super) async fn attempt(
        &self,
        acquire: &AcquireCommand,
        commands: &Pipeline,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let answers = on.send_many(commands, commands.len()).await?;
        // The usual case needs no future of its own.
        if let [Value::Nil, mark, time] = answers.as_slice()
            && let Some(fence) = fence_of(mark, time, on)
        {
            return Ok(Outcome::Granted(fence));
        }
        Box::pin(self.attempt_answered(answers, acquire, on)).await
    }

    async fn attempt_answered(
        &self,
        answers: Vec<Value>,
        acquire: &AcquireCommand,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let NativeAnswers { set, mark, time } = &self.understood(answers, acquire, on).await?;
        match set {
            SetResult::Done => match fence_of(mark, time, on) {
                Some(fence) => Ok(Outcome::Granted(fence)),
                None => self.set_without_fence(acquire, mark, time, on).await,
            },
            SetResult::Taken(Value::ServerError(error)) => Err(classify(error.clone().into())),
            SetResult::Taken(value) => match another_owner(value, acquire.token) {
                Some(owner) if is_shared(owner) => {
                    self.shared.note(&acquire.key);
                    if acquire.token.share().is_some() {
                        return Box::pin(self.acquire_share(acquire, on)).await;
                    }
                    Ok(Outcome::Busy(refusal_at_first(owner, time, acquire.ttl)))
                }
                Some(owner) => Ok(Outcome::Busy(refusal_at_first(owner, time, acquire.ttl))),
                // The key is this token's by an earlier send, or was released between two of the commands.
                None => self.acquire_by_script(acquire, on).await,
            },
            SetResult::Failed(error) => Err(classify(error.clone().into())),
        }
    }

    /// Completes an acquire that has set the key without a fencing token. Any other outcome than a grant must
    /// be undone.
    async fn set_without_fence(
        &self,
        acquire: &AcquireCommand,
        mark: &Value,
        time: &Value,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        if self.topology.is_cluster() && may_be_elsewhere(mark, on) {
            return Err(SendError::Unfenced(time.clone()));
        }
        if let (Value::ServerError(error), _) | (_, Value::ServerError(error)) = (mark, time) {
            return Ok(Outcome::Failed(ambiguous(failure(error.clone().into()))));
        }
        // The clock is behind the mark: the script counts on from there.
        match self.acquire_by_script(acquire, on).await {
            Ok(Outcome::Failed(failure)) => Ok(Outcome::Failed(ambiguous(failure))),
            Err(SendError::Moving(_) | SendError::Elsewhere(_)) => {
                Err(SendError::Unfenced(time.clone()))
            }
            // The next send is a repeated one.
            Err(SendError::Broken(error)) => Err(SendError::Broken(error)),
            Err(trouble) => Ok(Outcome::Failed(ambiguous(trouble.into_failure()))),
            answered => answered,
        }
    }
}

/// The answers to a first attempt.
pub(super) struct NativeAnswers {
    pub(super) set: SetResult,
    pub(super) mark: Value,
    pub(super) time: Value,
}

/// The result of the `SET`.
pub(super) enum SetResult {
    Done,
    /// The value of the key.
    Taken(Value),
    Failed(ServerError),
}

impl NativeAnswers {
    /// `None`: the answers make no sense.
    fn of(mut answers: Vec<Value>) -> Option<Self> {
        let (time, mark) = (answers.pop()?, answers.pop()?);
        let mut before = answers.into_iter();
        let set = match (before.next()?, before.next(), before.next()) {
            (Value::ServerError(error), ..) => SetResult::Failed(error),
            (Value::Nil, None, _) | (Value::Okay, Some(_), None) => SetResult::Done,
            (value, None, _) | (Value::Nil, Some(value), None) => SetResult::Taken(value),
            _ => return None,
        };
        Some(Self { set, mark, time })
    }
}

/// Returns the owner of the key. `None`: it is the token itself, by an earlier send, or the key went between
/// two of the commands.
pub(super) fn another_owner(value: &Value, token: Token) -> Option<&[u8]> {
    owner(value).filter(|owner| *owner != token.text().as_bytes())
}

pub(super) fn ambiguous(failure: Failure) -> Failure {
    Failure {
        ambiguous: true,
        ..failure
    }
}

/// Returns the fencing token of a lock that is set, if the node has its mark, and a clock that is not behind.
pub(super) fn fence_of(mark: &Value, time: &Value, on: &Connection) -> Option<FencingToken> {
    time_above(mark, time).filter(|_| !may_be_elsewhere(mark, on))
}

/// Returns whether the mark may be on the other one of two nodes between which the slot moves.
pub(super) fn may_be_elsewhere(mark: &Value, on: &Connection) -> bool {
    on.is_asking() && *mark == Value::Nil
        || matches!(SendError::of(mark), Some(SendError::Elsewhere(_)))
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
            NativeAnswers::of(answers).map(|first| {
                assert_eq!([&first.mark, &first.time], [&rest[0], &rest[1]]);
                match first.set {
                    SetResult::Done => "done".to_owned(),
                    SetResult::Taken(value) => {
                        format!("taken by {:?}", owner(&value).map(String::from_utf8_lossy))
                    }
                    SetResult::Failed(_) => "failed".to_owned(),
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
        assert!(NativeAnswers::of(rest.to_vec()).is_none());
    }

    #[test]
    fn the_token_itself_and_a_key_that_went_are_no_other_owner() {
        let token = |text| Token::parse(text).expect("a token");
        let ours = "0123456789abcdef/0123456789abcdef0123456789abcdef";
        let other = "0123456789abcdef/00000000000000000000000000000001";
        let value = |text: &str| Value::BulkString(text.into());
        assert_eq!(
            another_owner(&value(other), token(ours)),
            Some(other.as_bytes())
        );
        assert_eq!(another_owner(&value(ours), token(ours)), None);
        assert_eq!(another_owner(&Value::Nil, token(ours)), None, "gone");
    }
}
