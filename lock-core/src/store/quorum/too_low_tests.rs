//! Tests of nodes on which another lease is always a little ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::test_nodes::{Between, manager_on};
use crate::base::clock::Clock;
use crate::base::options::Wait;
use crate::store::vote::{Vote, VoteOperation, VoteOutcome};
use crate::store::{Lane, MemoryStore, Operation, Outcome, Store};

/// More than one round proposes, and more than twice as many.
const AHEAD: usize = 12;

/// Accepts no number of the first proposals, as if another lease had just had a higher one accepted.
#[derive(Debug)]
struct Outrun {
    node: Arc<MemoryStore>,
    proposals: AtomicUsize,
}

impl Between for Outrun {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        let proposes = matches!(operation, Operation::Vote(VoteOperation::Propose(_)));
        let ahead = proposes && self.proposals.fetch_add(1, Ordering::SeqCst) < AHEAD;
        match self.node.execute(operation, lane).await {
            Outcome::Vote(VoteOutcome::Voted {
                vote: Vote::Yes { highest, .. },
                ..
            }) if ahead => Outcome::Vote(VoteOutcome::voted(Vote::Yes {
                accepted: false,
                highest: highest + 1,
            })),
            outcome => outcome,
        }
    }
}

#[tokio::test]
async fn a_number_that_is_outrun_again_and_again_is_no_outage() {
    let node = || MemoryStore::new(Clock::default());
    let outrun = || {
        Arc::new(Outrun {
            node: node(),
            proposals: AtomicUsize::new(0),
        })
    };
    let stores: [Arc<dyn Store>; 3] = [outrun(), outrun(), node()];
    let locks = manager_on(stores.into(), Duration::from_secs(60)).await;
    let guard = locks.lock("k").wait(Wait::None).acquire().await;
    guard.expect("free").release().await.expect("held");
}
