//! The identities of managers, which operators read.
//!
//! A manager leaves its identity in a key of its own when it connects, and again every 20 minutes, because a lock's
//! value is compared whole and has no room for it. So a lock costs nothing more.

use std::sync::Arc;
use std::time::Duration;

use crate::base::identity::Identity;
use crate::base::machine::sleep;
use crate::base::token::Address;
use crate::store::redis::commands::RedisStore;
use crate::store::{BoxFuture, Lane, Operation, OperatorOperation, Outcome};

/// How often it is written.
const REFRESH: Duration = Duration::from_secs(20 * 60);
/// The pause after an identity could not be written.
const AGAIN: Duration = Duration::from_secs(5);

impl RedisStore {
    /// Keeps the identity of a manager in the store, for as long as the keeper runs.
    ///
    /// A connection that listens has written it already, except in a cluster, where another node may have its slot.
    pub(in crate::store::redis) async fn keep_cards(
        &self,
        manager: Address,
        identity: Option<Arc<Identity>>,
    ) {
        if let Some(identity) = identity {
            let write =
                || -> BoxFuture<'_, bool> { Box::pin(self.write_cards(manager, &identity)) };
            keep_written(self.topology.is_cluster(), write).await;
        }
    }

    /// Writes the identity for the manager and each of its runtimes. `false`: not all were written.
    async fn write_cards(&self, manager: Address, identity: &Arc<Identity>) -> bool {
        let mut addresses = self.connections.addresses(manager);
        addresses.push(manager);
        let mut written = true;
        for address in addresses {
            let write = OperatorOperation::WriteCard(address.into(), Arc::clone(identity));
            let outcome = self.ask(Operation::Operator(write), Lane::KEEPER).await;
            written &= !matches!(outcome, Outcome::Failed(_));
        }
        written
    }
}

/// Writes again and again, long before the end of what was written, and soon after a failure.
async fn keep_written<'a>(at_once: bool, mut write: impl FnMut() -> BoxFuture<'a, bool>) {
    let mut pause = match at_once {
        true => Duration::ZERO,
        false => REFRESH,
    };
    loop {
        sleep(pause).await;
        pause = match write().await {
            true => REFRESH,
            false => AGAIN,
        };
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::store::redis::wire::card::CARD;

    /// Returns when an identity is written in the first three of its lifetimes. The second attempt fails.
    #[expect(
        clippy::disallowed_methods,
        reason = "the paused clock of this runtime is the one that the keeper's pauses use"
    )]
    async fn written(at_once: bool) -> Vec<Duration> {
        let start = Instant::now();
        let mut attempts = Vec::new();
        let write = || -> BoxFuture<'_, bool> {
            attempts.push(start.elapsed());
            let done = attempts.len() != 2;
            Box::pin(async move { done })
        };
        let kept = timeout(3 * CARD, keep_written(at_once, write)).await;
        kept.expect_err("it goes on for ever");
        attempts.remove(1);
        attempts
    }

    #[tokio::test(start_paused = true)]
    async fn an_identity_is_written_again_twice_in_its_lifetime_and_soon_after_a_failure() {
        for at_once in [false, true] {
            let written = written(at_once).await;
            let mut last = Duration::ZERO;
            for time in written {
                assert!(time - last <= CARD / 2 + AGAIN, "{time:?} after {last:?}");
                last = time;
            }
            assert!(last + CARD / 2 >= 3 * CARD, "it goes on");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_identity_that_no_connection_has_written_is_written_at_once() {
        assert_eq!(written(true).await[0], Duration::ZERO);
    }
}
