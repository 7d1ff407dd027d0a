//! Tests requests that meet votes of their own process on their way out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{SetOnce, mpsc};

use super::super::test_nodes::{Between, manager_with};
use crate::base::clock::Clock;
use crate::base::options::Wait;
use crate::base::settings::Settings;
use crate::store::vote::{Vote, VoteOperation, VoteOutcome};
use crate::store::{Lane, MemoryStore, Operation, Outcome, Store};

/// A node to which some withdrawals are on their way until the test lets them arrive.
#[derive(Debug)]
struct Slow {
    node: Arc<MemoryStore>,
    /// The withdrawals that are slow, by their order.
    slow: [usize; 2],
    withdrawals: AtomicUsize,
    arrive: Arc<SetOnce<()>>,
    refused: mpsc::UnboundedSender<()>,
}

impl Between for Slow {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        if matches!(operation, Operation::Vote(VoteOperation::Withdraw(..))) {
            let order = self.withdrawals.fetch_add(1, Ordering::Relaxed);
            if self.slow.contains(&order) {
                self.arrive.wait().await;
            }
        }
        let outcome = self.node.execute(operation, lane).await;
        if let Outcome::Vote(VoteOutcome::Voted {
            vote: Vote::Taken { .. },
            ..
        }) = &outcome
        {
            let _ = self.refused.send(());
        }
        outcome
    }
}

/// Three of five nodes refuse a writer, each because of two readers of its own process that have been given back.
#[tokio::test]
async fn readers_that_were_given_back_refuse_no_writer_of_their_process() {
    let arrive = Arc::new(SetOnce::new());
    let (refused, mut refusals) = mpsc::unbounded_channel();
    let slow = |slow| {
        Arc::new(Slow {
            node: MemoryStore::new(Clock::default()),
            slow,
            withdrawals: AtomicUsize::new(0),
            arrive: Arc::clone(&arrive),
            refused: refused.clone(),
        })
    };
    let stores: [Arc<dyn Store>; 5] = [
        MemoryStore::new(Clock::default()),
        slow([0, 1]),
        slow([1, 2]),
        slow([0, 2]),
        MemoryStore::new(Clock::default()),
    ];
    let settings = Settings {
        defaults: (Duration::from_secs(600), Wait::None),
        operation_timeout: Duration::from_secs(60),
        ..Settings::default()
    };
    let locks = manager_with(stores.into(), settings).await;
    for _ in 0..3 {
        let reader = locks.lock("k").read().acquire().await.expect("room");
        reader.release().await.expect("a majority confirms it");
    }
    let writer = tokio::spawn(locks.lock("k").wait(Wait::None).acquire());
    for _ in 0..3 {
        let refusal = tokio::time::timeout(Duration::from_secs(20), refusals.recv()).await;
        refusal.expect("in time").expect("the readers stand there");
    }
    arrive.set(()).expect("once");
    let writer = writer.await.expect("no panic");
    drop(writer.expect("nobody has it"));
}
