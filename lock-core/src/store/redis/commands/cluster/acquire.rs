//! Acquiring a lock whose slot is moving.

use std::sync::Arc;

use redis::Value;

use crate::store::redis::commands::RedisStore;
use crate::store::redis::commands::native_acquire::{
    NativeAnswers, SetResult, ambiguous, another_owner, fence_of, may_be_elsewhere,
};
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::{owner, refusal_at_first};
use crate::store::redis::wire::send_error::{SendError, classify};
use crate::store::{AcquireCommand, Extension, Failure, Outcome};

impl RedisStore {
    /// Acquires with commands about one key each. No waiter is queued.
    pub(in crate::store::redis::commands) async fn acquire_one_key(
        &self,
        acquire: &AcquireCommand,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let commands = self.native_commands(acquire);
        let first = self.send_native(acquire, &commands, on).await?;
        self.acquire_answered(acquire, &first, on).await
    }

    async fn acquire_answered(
        &self,
        acquire: &AcquireCommand,
        first: &NativeAnswers,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let ours = match &first.set {
            SetResult::Failed(error) => return Err(classify(error.clone().into())),
            SetResult::Done => true,
            SetResult::Taken(value) => {
                if let Some(owner) = another_owner(value, acquire.token) {
                    let refusal = refusal_at_first(owner, &first.time, acquire.ttl);
                    return Ok(Outcome::Busy(refusal));
                }
                if owner(value).is_some() {
                    // The key is this token's by an earlier send, which may have been for a shorter ttl.
                    let lease = Extension {
                        key: Arc::clone(&acquire.key),
                        token: acquire.token,
                        ttl: acquire.ttl,
                    };
                    let answer = self.extend_locks([&lease].into_iter(), on).await?;
                    matches!(answer, Value::Array(told) if told == [Value::Int(1)])
                } else {
                    false
                }
            }
        };
        match fence_of(&first.mark, &first.time, on) {
            Some(fence) if ours => Ok(Outcome::Granted(fence)),
            None if ours && may_be_elsewhere(&first.mark, on) => {
                Err(SendError::Unfenced(first.time.clone()))
            }
            _ => Ok(on_its_way()),
        }
    }
}

/// The outcome of an acquire that is to be undone.
pub(super) fn on_its_way() -> Outcome {
    Outcome::Failed(ambiguous(Failure::refused(
        "the lock is on its way to another node of the cluster",
    )))
}

#[cfg(test)]
#[path = "acquire_tests.rs"]
mod tests;
