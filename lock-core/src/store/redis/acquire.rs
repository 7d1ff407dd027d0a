//! Acquiring: three things at once with native commands, or the script.
//!
//! A first attempt is one write of `SET NX PX`, and what a grant or a refusal has to tell: a script
//! with the same outcome costs the server ten times as much. The script is for whoever wants to be
//! queued, steps over a release, or may have asked before.

use std::sync::Arc;

use redis::{Cmd, Pipeline, Value};

use super::answers::{
    Trouble, acquired, acquired_in_batch, failure, not_understood, number, owner, refusal, trouble,
};
use super::batch::Item;
use super::connection::Connection;
#[cfg(feature = "cluster")]
use super::scripts;
use super::{RedisStore, grant, millis};
use crate::fence::FencingToken;
use crate::store::{Acquire, Failure, Outcome};

impl RedisStore {
    pub(super) async fn acquire(
        &self,
        acquire: &Acquire,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        if acquire.queue || acquire.repeated || acquire.replaces.is_some() {
            return Box::pin(self.acquire_by_script(acquire, on)).await;
        }
        let lock = self.names.lock(&acquire.key);
        if on.is_busy() {
            let item = Item::Acquire {
                key: Arc::clone(&acquire.key),
                lock,
                token: acquire.token,
                ttl_millis: millis(acquire.ttl),
            };
            return match on.send_in_batch(&self.names, item).await? {
                Some(answer) => Ok(acquired_in_batch(&answer, self.keeper.is_listening())),
                None => Box::pin(self.acquire_by_script(acquire, on)).await,
            };
        }
        let token = acquire.token.text();
        let token = token.as_str();
        let Some([set, value, left, mark, time]) = self.attempt(acquire, &lock, on).await? else {
            return Ok(not_understood());
        };
        match set {
            // Set: whatever does not end in a grant from here on must be undone.
            Value::Okay => match (time_above(&mark, &time, on.least_mark()), mark, time) {
                (Some(fence), _, _) => Ok(Outcome::Granted(fence)),
                (None, Value::ServerError(error), _) | (None, _, Value::ServerError(error)) => {
                    Ok(Outcome::Failed(to_be_undone(failure(error.into()))))
                }
                // The clock is behind the mark: the script counts on from there.
                (None, _, _) => match Box::pin(self.acquire_by_script(acquire, on)).await {
                    Ok(Outcome::Failed(failure)) | Err(Trouble::Failed(failure)) => {
                        Ok(Outcome::Failed(to_be_undone(failure)))
                    }
                    other => other,
                },
            },
            Value::Nil => match (&value, &left) {
                (Value::ServerError(error), _) => Err(trouble(error.clone().into())),
                (value, Value::Int(left)) => match owner(value) {
                    Some(owner) if owner != token => Ok(Outcome::Busy(refusal(
                        &owner,
                        *left,
                        self.keeper.is_listening(),
                    ))),
                    // Ours by an earlier send, or released between two of the commands.
                    _ => Box::pin(self.acquire_by_script(acquire, on)).await,
                },
                (_, Value::ServerError(error)) => Err(trouble(error.clone().into())),
                _ => Ok(not_understood()),
            },
            Value::ServerError(error) => Err(elsewhere(trouble(error.into()), &mark)),
            _ => Ok(not_understood()),
        }
    }

    /// The answers to `SET`, `GET`, `PTTL`, `GET` of the mark, and `TIME`; nothing for one that is not
    /// understood.
    async fn attempt(
        &self,
        acquire: &Acquire,
        lock: &str,
        on: &Connection,
    ) -> Result<Option<[Value; 5]>, Trouble> {
        if !self.keeper.set_tells_value() {
            let commands = self.first_attempt(acquire, lock, false);
            return on.send_all(&commands).await.map(Some);
        }
        let commands = self.first_attempt(acquire, lock, true);
        let [answer, left, mark, time] = on.send_all(&commands).await?;
        Ok(told_by_set(answer).map(|(set, value)| [set, value, left, mark, time]))
    }

    /// As [`RedisStore::acquire`] for a lock whose keys are on their way to another node: whatever has
    /// to be done, it is done to one key at a time. Nobody is queued.
    #[cfg(feature = "cluster")]
    pub(super) async fn acquire_one_key(
        &self,
        acquire: &Acquire,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let lock = self.names.lock(&acquire.key);
        let token = acquire.token.text();
        let Some([set, value, left, mark, time]) = self.attempt(acquire, &lock, on).await? else {
            return Ok(not_understood());
        };
        if let Value::ServerError(error) = set {
            return Err(elsewhere(trouble(error.into()), &mark));
        }
        let ours = match (set, owner(&value), left) {
            (Value::Okay, ..) => true,
            (Value::Nil, Some(owner), _) if owner == token.as_str() => {
                // By an earlier send, which may have been for less.
                let ttl = millis(acquire.ttl);
                let mut arguments = vec![token.as_str(), &ttl];
                if self.replicas.is_some() {
                    arguments.push("write");
                }
                let answer = scripts::EXTEND.run(on, &[&lock], &arguments).await?;
                matches!(answer, Value::Array(told) if told == [Value::Int(1)])
            }
            (Value::Nil, Some(owner), Value::Int(left)) => {
                return Ok(Outcome::Busy(refusal(&owner, left, false)));
            }
            _ => false,
        };
        Ok(match time_above(&mark, &time, on.least_mark()) {
            Some(fence) if ours => Outcome::Granted(fence),
            _ => Outcome::Failed(to_be_undone(Failure::refused(
                "the lock is on its way to another node of the cluster",
            ))),
        })
    }

    /// One command less from Redis 7.0 on, where `SET` tells what stands in its way.
    fn first_attempt(&self, acquire: &Acquire, lock: &str, set_tells_value: bool) -> Pipeline {
        let token = acquire.token.text();
        let token = token.as_str();
        let mut set = Cmd::with_capacity(7, lock.len() + token.len() + 32);
        set.arg("SET").arg(lock).arg(token).arg("NX");
        set.arg("PX").arg(millis(acquire.ttl));
        let mut commands = Pipeline::with_capacity(5);
        if set_tells_value {
            set.arg("GET");
            commands.add_command(set);
        } else {
            commands.add_command(set).add_command(question("GET", lock));
        }
        commands
            .add_command(question("PTTL", lock))
            .add_command(question("GET", &self.names.mark(lock)))
            .add_command(question("TIME", ""));
        commands
    }

    async fn acquire_by_script(
        &self,
        acquire: &Acquire,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let lock = self.names.lock(&acquire.key);
        let queue = self.names.queue(&acquire.key);
        let mark = self.names.mark(&lock);
        let keys = [lock.as_str(), &mark, queue.as_str()];
        let token = acquire.token.text();
        let replaces = acquire.replaces.map(|lease| lease.token.to_string());
        let used = acquire.replaces.and_then(|lease| lease.fence);
        let used = used.map(|fence| fence.to_string());
        let arguments = [
            token.as_str(),
            &millis(acquire.ttl),
            &grant(acquire.ttl),
            if acquire.queue { "1" } else { "0" },
            replaces.as_deref().unwrap_or_default(),
            self.names.channels(),
            used.as_deref().unwrap_or_default(),
        ];
        let answer = self.scripts.acquire.run(on, &keys, &arguments).await?;
        Ok(acquired(&answer, self.keeper.is_listening()))
    }
}

/// The answer of `SET … NX GET`, as those of `SET … NX` and `GET`: it is nothing when the key was
/// set, and what stands in the key when it was not.
fn told_by_set(answer: Value) -> Option<(Value, Value)> {
    match answer {
        Value::Nil => Some((Value::Okay, Value::Nil)),
        value @ Value::BulkString(_) => Some((Value::Nil, value)),
        error @ Value::ServerError(_) => Some((error, Value::Nil)),
        _ => None,
    }
}

fn to_be_undone(failure: Failure) -> Failure {
    Failure {
        ambiguous: true,
        ..failure
    }
}

/// A command with one argument, or none.
pub(super) fn question(verb: &str, argument: &str) -> Cmd {
    let mut command = Cmd::with_capacity(2, verb.len() + argument.len());
    command.arg(verb);
    if !argument.is_empty() {
        command.arg(argument);
    }
    command
}

/// Another node has the lock, and may not have the mark yet: what it is goes along.
fn elsewhere(trouble: Trouble, mark: &Value) -> Trouble {
    match trouble {
        Trouble::Elsewhere(elsewhere) => Trouble::Elsewhere(elsewhere.with_mark(number(mark))),
        trouble => trouble,
    }
}

/// The server's time in microseconds, if it is above the mark, which is `least` at the least: a fencing
/// token.
pub(super) fn time_above(mark: &Value, time: &Value, least: u64) -> Option<FencingToken> {
    let mark = match mark {
        Value::Nil => least,
        mark => number(mark)?.max(least),
    };
    let Value::Array(time) = time else {
        return None;
    };
    let [seconds, micros] = time.as_slice() else {
        return None;
    };
    let now = number(seconds)?
        .checked_mul(1_000_000)?
        .checked_add(number(micros)?)?;
    if now > mark {
        FencingToken::new(now)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: &str, micros: &str) -> Value {
        let part = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        Value::Array(vec![part(seconds), part(micros)])
    }

    #[test]
    fn a_set_that_tells_the_value_has_set_when_it_tells_none() {
        let owned = Value::BulkString(b"x".to_vec());
        let not_set = Some((Value::Nil, owned.clone()));
        assert_eq!(told_by_set(owned), not_set);
        assert_eq!(told_by_set(Value::Nil), Some((Value::Okay, Value::Nil)));
        for strange in [Value::Okay, Value::Int(1), Value::Array(vec![])] {
            assert_eq!(told_by_set(strange), None);
        }
    }

    #[test]
    fn the_fencing_token_is_the_servers_time_where_that_is_above_the_mark() {
        let now = time("1700000000", "25");
        let fence_of = |mark: Value| time_above(&mark, &now, 0).map(u64::from);
        assert_eq!(fence_of(Value::Nil), Some(1_700_000_000_000_025));
        assert_eq!(
            fence_of(Value::BulkString(b"1700000000000024".to_vec())),
            Some(1_700_000_000_000_025)
        );
        assert_eq!(
            fence_of(Value::BulkString(b"1700000000000025".to_vec())),
            None
        );
        assert_eq!(fence_of(Value::BulkString(b"soon".to_vec())), None);
        assert_eq!(time_above(&Value::Nil, &Value::Okay, 0), None);
        // What another node has said of the mark counts too.
        assert_eq!(time_above(&Value::Nil, &now, 1_700_000_000_000_025), None);
    }
}
