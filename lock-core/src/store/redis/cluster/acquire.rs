//! Acquiring a lock whose keys are on their way from one node of a cluster to another. What was read of the
//! mark on the one is known to the other.

use redis::Value;

use crate::store::redis::answers::{not_understood, owner, refusal, time_above};
use crate::store::redis::connection::Connection;
use crate::store::redis::first::{First, Set, elsewhere, to_be_undone};
use crate::store::redis::trouble::{Trouble, trouble};
use crate::store::redis::{RedisStore, millis, scripts};
use crate::store::{Acquire, Failure, Outcome};

impl RedisStore {
    /// Whatever has to be done, it is done to one key at a time. Nobody is queued.
    pub(in crate::store::redis) async fn acquire_one_key(
        &self,
        acquire: &Acquire,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let lock = self.names.lock(&acquire.key);
        let token = acquire.token.text();
        let commands = self.first_attempt(acquire);
        let answers = self.ask_first(acquire, &commands, on).await?;
        let Some(First {
            set,
            left,
            mark,
            time,
        }) = First::of(&answers)
        else {
            return Ok(not_understood());
        };
        let ours = match set {
            Set::Failed(error) => return Err(elsewhere(trouble(error.clone().into()), mark)),
            Set::Done => true,
            Set::Taken(value) => match (owner(value), left) {
                (Some(owner), _) if owner == token.as_str() => {
                    // By an earlier send, which may have been for less.
                    let ttl = millis(acquire.ttl);
                    let mut arguments = vec![token.as_str(), &ttl];
                    if self.replicas.is_some() {
                        arguments.push("write");
                    }
                    let answer = scripts::EXTEND.run(on, &[&lock], &arguments).await?;
                    matches!(answer, Value::Array(told) if told == [Value::Int(1)])
                }
                (Some(owner), Value::Int(left)) => {
                    return Ok(Outcome::Busy(refusal(&owner, *left, false)));
                }
                _ => false,
            },
        };
        Ok(match time_above(mark, time, on.least_mark()) {
            Some(fence) if ours => Outcome::Granted(fence),
            _ => Outcome::Failed(to_be_undone(Failure::refused(
                "the lock is on its way to another node of the cluster",
            ))),
        })
    }
}
