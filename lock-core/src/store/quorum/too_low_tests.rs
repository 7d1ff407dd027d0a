//! Tests of nodes on which another lease is always a little ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::test_nodes::{Between, manager_with};
use crate::LockManager;
use crate::base::clock::Clock;
use crate::base::options::Wait;
use crate::base::settings::Settings;
use crate::store::vote::{Vote, VoteOperation, VoteOutcome};
use crate::store::{Failure, Lane, MemoryStore, Operation, Outcome, Store};

/// More than one round proposes, and more than twice as many.
const AHEAD: usize = 12;

/// Accepts no number of the first proposals, as if another lease had just had a higher one accepted.
#[derive(Debug)]
struct Outrun {
    node: Arc<MemoryStore>,
    ahead: usize,
    /// The proposal after these is refused, and the first withdrawal.
    refuses: bool,
    proposals: AtomicUsize,
    withdrawals: AtomicUsize,
}

impl Outrun {
    fn new(ahead: usize, refuses: bool) -> Arc<Self> {
        Arc::new(Self {
            node: MemoryStore::new(Clock::default()),
            ahead,
            refuses,
            proposals: AtomicUsize::new(0),
            withdrawals: AtomicUsize::new(0),
        })
    }
}

impl Between for Outrun {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        let (is_ahead, is_next) = match &operation {
            Operation::Vote(VoteOperation::Propose(_)) => {
                let number = self.proposals.fetch_add(1, Ordering::SeqCst);
                (number < self.ahead, number == self.ahead)
            }
            Operation::Vote(VoteOperation::Withdraw(..)) => {
                let number = self.withdrawals.fetch_add(1, Ordering::SeqCst);
                (false, number == 0)
            }
            _ => (false, false),
        };
        if is_next && self.refuses {
            return Outcome::Failed(Failure::refused("a right is missing"));
        }
        match self.node.execute(operation, lane).await {
            Outcome::Vote(VoteOutcome::Voted {
                vote: Vote::Yes { highest, .. },
                ..
            }) if is_ahead => Outcome::Vote(VoteOutcome::voted(Vote::Yes {
                accepted: false,
                highest: highest + 1,
            })),
            outcome => outcome,
        }
    }
}

/// An attempt is given up after a part of the `operation_timeout`, which a busy machine must not use up.
async fn patient_manager(stores: Vec<Arc<dyn Store>>) -> LockManager {
    let patient = Settings {
        defaults: (Duration::from_secs(600), Wait::Forever),
        operation_timeout: Duration::from_secs(60),
        ..Settings::default()
    };
    manager_with(stores, patient).await
}

#[tokio::test]
async fn a_number_that_is_outrun_again_and_again_is_no_outage() {
    let outrun = || Outrun::new(AHEAD, false);
    let node = MemoryStore::new(Clock::default());
    let stores: [Arc<dyn Store>; 3] = [outrun(), outrun(), node];
    let locks = patient_manager(stores.into()).await;
    let guard = locks.lock("k").wait(Wait::None).acquire().await;
    guard.expect("free").release().await.expect("held");
}

#[tokio::test]
async fn a_vote_stands_though_its_node_refuses_the_next_question() {
    let refusing = Outrun::new(1, true);
    let stores: [Arc<dyn Store>; 3] = [
        Arc::clone(&refusing) as _,
        Outrun::new(1, false),
        MemoryStore::new(Clock::default()),
    ];
    let locks = patient_manager(stores.into()).await;
    let guard = locks.lock("k").wait(Wait::None).acquire().await;
    let guard = guard.expect("two nodes vote for it in the second round");
    assert_eq!(refusing.node.counts().0, 1, "the first vote stands");
    guard.release().await.expect("two nodes confirm it");
    let free = async {
        while refusing.node.counts().0 > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let free = tokio::time::timeout(Duration::from_secs(20), free).await;
    free.expect("the vote is withdrawn");
}
