//! Tests a record that arrives late: behind a vote whose answer is late, and on a node that has it longer than the others.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::test_nodes::{Between, manager_on, take};
use crate::base::clock::Clock;
use crate::base::record::Record;
use crate::base::token::{Address, TokenSource};
use crate::store::vote::VoteOperation;
use crate::store::{
    AcquireCommand, Failure, Forgotten, Lane, MemoryStore, Operation, Outcome, Queueing, Release,
    Remembered, Store,
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

/// A node that answers no vote.
#[derive(Debug)]
struct NoVoter(Arc<MemoryStore>);

impl Between for NoVoter {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.0
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        if matches!(operation, Operation::Vote(VoteOperation::Propose(_))) {
            std::future::pending::<()>().await;
        }
        self.0.execute(operation, lane).await
    }
}

/// Leaves a record on one node, as if the record had ended on the others.
async fn leave_a_record(node: &Arc<MemoryStore>) {
    let token = TokenSource::new(Address::random()).fresh();
    assert!(take(node, token).await);
    let release = Release {
        key: "k".into(),
        token,
        ttl: Duration::from_secs(60),
        fence: None,
        in_background: false,
    };
    let a_minute = Duration::from_secs(60);
    let record = Record::checked(b"earlier".to_vec(), a_minute, a_minute).expect("in bounds");
    let left = Operation::Remember(release, record);
    let left = node.execute(left, Lane::KEEPER).await;
    assert!(matches!(left, Outcome::Remembered(Remembered::Yes)));
}

#[tokio::test]
async fn a_key_whose_next_owner_has_a_majority_is_held_although_one_node_still_has_the_record() {
    let late = MemoryStore::new(Clock::default());
    leave_a_record(&late).await;
    let others = [(); 2].map(|()| MemoryStore::new(Clock::default()) as Arc<dyn Store>);
    let mut stores = vec![Arc::new(NoVoter(late)) as Arc<dyn Store>];
    stores.extend(others);
    let locks = manager_on(stores, Duration::from_secs(60)).await;
    let guard = locks.lock("k").acquire().await.expect("two nodes are free");
    assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Held);
    guard.release().await.expect("held by two nodes");
    assert_eq!(
        locks.forget("k").await.expect("no fault"),
        Forgotten::Nothing
    );
}

/// A node that stores no record and withdraws nothing.
#[derive(Debug)]
struct Keeper(Arc<MemoryStore>);

impl Between for Keeper {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.0
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        match operation {
            Operation::Remember(..) | Operation::Vote(VoteOperation::Withdraw(..)) => {
                Outcome::Failed(Failure::refused("the node writes nothing at the moment"))
            }
            operation => self.0.execute(operation, lane).await,
        }
    }
}

#[tokio::test]
async fn a_record_is_not_reported_as_deleted_while_a_node_keeps_the_token_before_it() {
    let keeper = Arc::new(Keeper(MemoryStore::new(Clock::default())));
    let others = [(); 2].map(|()| MemoryStore::new(Clock::default()) as Arc<dyn Store>);
    let mut stores = vec![keeper as Arc<dyn Store>];
    stores.extend(others);
    let locks = manager_on(stores, Duration::from_secs(60)).await;
    let guard = locks.lock("k").acquire().await.expect("free");
    let a_minute = Duration::from_secs(60);
    guard.remember("the answer", a_minute).expect("in bounds");
    guard.release().await.expect("two nodes have the record");
    let error = locks.forget("k").await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
}
