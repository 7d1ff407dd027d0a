//! Acquiring a lock whose slot is moving. The high-water mark that the one node reported goes along to the
//! other.

use std::sync::Arc;

use redis::Value;

use crate::store::redis::commands::RedisStore;
use crate::store::redis::commands::native_acquire::{
    NativeAnswers, SetResult, ambiguous, another_owner, elsewhere,
};
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::{owner, refusal_at_first, time_above};
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
        let acquired = self.acquire_answered(acquire, &first, on).await;
        // The keys may move one after another behind these commands.
        acquired.map_err(|trouble| elsewhere(trouble, &first.mark))
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
        match time_above(&first.mark, &first.time, on.least_mark()) {
            Some(fence) if ours => Ok(Outcome::Granted(fence)),
            None if ours && is_elsewhere(&first.mark) => {
                Err(SendError::Unfenced(first.time.clone()))
            }
            _ => Ok(on_its_way()),
        }
    }
}

/// Returns whether the mark is on the other node already.
fn is_elsewhere(mark: &Value) -> bool {
    matches!(SendError::of(mark), Some(SendError::Elsewhere(_)))
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
