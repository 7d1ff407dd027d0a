//! Tests a record that is sent behind a vote whose answer arrives late.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::test_nodes::{Between, manager_on};
use crate::base::clock::Clock;
use crate::base::token::{Address, TokenSource};
use crate::store::vote::VoteOperation;
use crate::store::{
    AcquireCommand, Lane, MemoryStore, Operation, Outcome, Queueing, Remembered, Store,
};

/// A node whose vote is heard when the record is on its way, and which stores the record a moment later.
#[derive(Debug)]
struct LateVoter {
    node: Arc<MemoryStore>,
    record_sent: Notify,
    record_met: Notify,
}

impl Between for LateVoter {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        let is_vote = matches!(operation, Operation::Vote(VoteOperation::Propose(_)));
        if matches!(operation, Operation::Remember(..)) {
            self.record_sent.notify_one();
            // A withdrawal that the vote brings about is faster.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let outcome = self.node.execute(operation, lane).await;
        match &outcome {
            Outcome::Remembered(Remembered::Yes | Remembered::Absent) => {
                self.record_met.notify_one();
            }
            _ if is_vote => self.record_sent.notified().await,
            _ => {}
        }
        outcome
    }
}

#[tokio::test]
async fn a_vote_that_is_heard_while_the_record_is_on_its_way_is_left_to_the_record() {
    let late = Arc::new(LateVoter {
        node: MemoryStore::new(Clock::default()),
        record_sent: Notify::new(),
        record_met: Notify::new(),
    });
    let others = [(); 2].map(|()| MemoryStore::new(Clock::default()) as Arc<dyn Store>);
    let mut stores = vec![Arc::clone(&late) as Arc<dyn Store>];
    stores.extend(others);
    let locks = manager_on(stores, Duration::from_secs(60)).await;
    let guard = locks.lock("k").acquire().await.expect("free");
    let a_minute = Duration::from_secs(60);
    guard.remember("the answer", a_minute).expect("in bounds");
    guard.release().await.expect("held by two nodes");
    let met = tokio::time::timeout(Duration::from_secs(20), late.record_met.notified()).await;
    met.expect("the last node gets the record");
    let acquire = Operation::Acquire(AcquireCommand {
        key: "k".into(),
        token: TokenSource::new(Address::random()).fresh(),
        ttl: a_minute,
        queueing: Queueing::Never,
        replaces: None,
        repeated: false,
    });
    let refused = late.node.execute(acquire, Lane::KEEPER).await;
    let Outcome::Busy(refusal) = refused else {
        panic!("the node has no record: {refused:?}");
    };
    let record = refusal.record.expect("the record is in the key");
    assert_eq!(&*record.bytes, b"the answer");
}
