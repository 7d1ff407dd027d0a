//! Acquiring on a node of a cluster: with native commands, in one write.
//!
//! Each of them is about one key, so that they are answered while a slot is on its way from one node to
//! another, and what was read of the mark on the one is known to the other.

use redis::{Pipeline, Value, cmd};

use crate::store::redis::answers::{not_understood, number, owner, refusal, time_above};
use crate::store::redis::connection::Connection;
use crate::store::redis::trouble::{Trouble, failure, trouble};
use crate::store::redis::{RedisStore, millis, scripts};
use crate::store::{Acquire, Failure, Outcome};

impl RedisStore {
    /// A first attempt.
    pub(in crate::store::redis) async fn acquire_on_a_node(
        &self,
        acquire: &Acquire,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let lock = self.names.lock(&acquire.key);
        let token = acquire.token.text();
        let token = token.as_str();
        let [set, value, left, mark, time] = self.attempt(acquire, &lock, on).await?;
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

    /// The answers to `SET`, `GET`, `PTTL`, `GET` of the mark, and `TIME`.
    async fn attempt(
        &self,
        acquire: &Acquire,
        lock: &str,
        on: &Connection,
    ) -> Result<[Value; 5], Trouble> {
        let token = acquire.token.text();
        let mut set = cmd("SET");
        set.arg(lock).arg(token.as_str()).arg("NX");
        set.arg("PX").arg(millis(acquire.ttl));
        let mut commands = Pipeline::with_capacity(5);
        commands
            .add_command(set)
            .add_command(cmd("GET").arg(lock).take())
            .add_command(cmd("PTTL").arg(lock).take())
            .add_command(cmd("GET").arg(&*self.names.mark(lock)).take())
            .add_command(cmd("TIME"));
        on.send_all(&commands).await
    }

    /// As [`RedisStore::acquire`] for a lock whose keys are on their way to another node: whatever has
    /// to be done, it is done to one key at a time. Nobody is queued.
    pub(in crate::store::redis) async fn acquire_one_key(
        &self,
        acquire: &Acquire,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let lock = self.names.lock(&acquire.key);
        let token = acquire.token.text();
        let [set, value, left, mark, time] = self.attempt(acquire, &lock, on).await?;
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
}

fn to_be_undone(failure: Failure) -> Failure {
    Failure {
        ambiguous: true,
        ..failure
    }
}

/// Another node has the lock, and may not have the mark yet: what it is goes along.
fn elsewhere(trouble: Trouble, mark: &Value) -> Trouble {
    match trouble {
        Trouble::Elsewhere(elsewhere) => Trouble::Elsewhere(elsewhere.with_mark(number(mark))),
        trouble => trouble,
    }
}
