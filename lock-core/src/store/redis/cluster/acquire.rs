//! Acquiring a lock whose keys are on their way from one node of a cluster to another. What was read of the
//! mark on the one is known to the other.

use redis::Value;

use crate::store::redis::connection::Connection;
use crate::store::redis::native_acquire::{Set, another_owner, elsewhere, to_be_undone};
use crate::store::redis::reply::{owner, refusal_at_first, time_above};
use crate::store::redis::send_error::{Trouble, trouble};
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
        let first = self.ask_first(acquire, &commands, on).await?;
        let ours = match first.set {
            Set::Failed(error) => return Err(elsewhere(trouble(error.into()), &first.mark)),
            Set::Done => true,
            Set::Taken(value) => {
                if let Some(owner) = another_owner(&value, acquire.token) {
                    let refusal = refusal_at_first(&owner, &first.time, acquire.ttl);
                    return Ok(Outcome::Busy(refusal));
                }
                if owner(&value).is_some_and(|owner| owner == token.as_str()) {
                    // By an earlier send, which may have been for less.
                    let ttl = millis(acquire.ttl);
                    let mut arguments = vec![token.as_str(), &ttl];
                    if self.replicas.is_some() {
                        arguments.push("write");
                    }
                    let answer = scripts::EXTEND.run(on, &[&lock], &arguments).await?;
                    matches!(answer, Value::Array(told) if told == [Value::Int(1)])
                } else {
                    false
                }
            }
        };
        Ok(
            match time_above(&first.mark, &first.time, on.least_mark()) {
                Some(fence) if ours => Outcome::Granted(fence),
                _ => Outcome::Failed(to_be_undone(Failure::refused(
                    "the lock is on its way to another node of the cluster",
                ))),
            },
        )
    }
}
