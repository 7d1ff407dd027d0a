//! Tests records beside late votes, and a record that one node has longer than the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use super::test_nodes::{Between, manager_on, take};
use crate::api::handle::LockHandle;
use crate::api::manager::LockManager;
use crate::base::clock::Clock;
use crate::base::record::{Record, RecordOutcome};
use crate::base::token::{Address, TokenSource};
use crate::store::vote::VoteOperation;
use crate::store::{
    Failure, Forgotten, Lane, MemoryStore, Operation, Outcome, Release, Remembered, Store,
};

mod second_wave_tests;

/// A node that gets some operations late, in the order in which they were sent.
#[derive(Debug)]
struct Far {
    node: Arc<MemoryStore>,
    is_late: fn(&Operation) -> bool,
    /// Held by the operation that arrives next.
    line: Arc<Mutex<()>>,
    arrive: watch::Sender<bool>,
    /// The numbers of late operations that were sent, and that have arrived.
    sent: watch::Sender<usize>,
    arrived: watch::Sender<usize>,
}

impl Far {
    fn new(node: &Arc<MemoryStore>, is_late: fn(&Operation) -> bool) -> Arc<Self> {
        Arc::new(Self {
            node: Arc::clone(node),
            is_late,
            line: Arc::default(),
            arrive: watch::Sender::default(),
            sent: watch::Sender::default(),
            arrived: watch::Sender::default(),
        })
    }
}

impl Between for Far {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        if !(self.is_late)(&operation) {
            return self.node.execute(operation, lane).await;
        }
        self.sent.send_modify(|sent| *sent += 1);
        let (node, line) = (Arc::clone(&self.node), Arc::clone(&self.line));
        let (arrive, arrived) = (self.arrive.clone(), self.arrived.clone());
        // It arrives although its caller may give it up.
        let arrives = tokio::spawn(async move {
            let _turn = line.lock().await;
            reaches(&arrive, |arrive| *arrive).await;
            let outcome = node.execute(operation, lane).await;
            arrived.send_modify(|arrived| *arrived += 1);
            outcome
        });
        arrives.await.expect("no panic")
    }
}

async fn reaches<T>(value: &watch::Sender<T>, wanted: impl FnMut(&T) -> bool) {
    let mut value = value.subscribe();
    value.wait_for(wanted).await.expect("the sender is here");
}

fn is_of_an_owner(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Remember(..)
            | Operation::Vote(VoteOperation::Propose(_) | VoteOperation::Withdraw(..))
    )
}

fn nodes() -> [Arc<MemoryStore>; 3] {
    [(); 3].map(|()| MemoryStore::new(Clock::default()))
}

/// A manager on these nodes with another one in the place of the node behind it.
async fn manager_with_one(
    nodes: &[Arc<MemoryStore>; 3],
    place: usize,
    node: Arc<dyn Store>,
) -> LockManager {
    let mut stores = nodes.clone().map(|node| node as Arc<dyn Store>);
    stores[place] = node;
    manager_on(stores.to_vec(), Duration::from_secs(60)).await
}

/// Takes the key, and leaves a record in it.
async fn leaves_the_answer(locks: &LockManager) -> LockHandle {
    let guard = locks.lock("k").acquire().await.expect("free");
    let a_minute = Duration::from_secs(60);
    guard.remember("the answer", a_minute).expect("in bounds");
    let lock = guard.handle();
    guard.release().await.expect("held by two nodes");
    lock
}

/// Checks that nothing of an owner stays on a node.
async fn is_free(node: &Arc<MemoryStore>) {
    let free = async {
        let other = TokenSource::new(Address::random()).fresh();
        while !take(node, other).await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let free = tokio::time::timeout(Duration::from_secs(5), free).await;
    free.expect("nothing stays on the node");
}

/// A record that stays on one node is the answer to a later request.
#[tokio::test]
async fn a_record_that_was_forgotten_does_not_arrive_behind_a_late_vote() {
    let nodes = nodes();
    let far = Far::new(&nodes[2], is_of_an_owner);
    let one = manager_with_one(&nodes, 2, far.clone()).await;
    let two = manager_with_one(&nodes, 2, nodes[2].clone()).await;
    leaves_the_answer(&one).await;
    assert_eq!(two.forget("k").await.expect("no fault"), Forgotten::Yes);
    far.arrive.send_replace(true);
    reaches(&far.arrived, |arrived| *arrived > 0).await;
    is_free(&nodes[2]).await;
}

/// The call finds the record on one node, and has asked another one before its owner came.
#[tokio::test]
async fn a_node_that_was_asked_before_the_owner_came_does_not_keep_a_forgotten_record() {
    let nodes = nodes();
    let far = Far::new(&nodes[0], |operation| {
        matches!(operation, Operation::Forget(_))
    });
    let one = manager_with_one(&nodes, 0, nodes[0].clone()).await;
    let two = manager_with_one(&nodes, 0, far.clone()).await;
    let forgets = tokio::spawn(async move { two.forget("k").await });
    reaches(&far.sent, |sent| *sent > 0).await;
    leaves_the_answer(&one).await;
    far.arrive.send_replace(true);
    let forgotten = forgets.await.expect("no panic");
    assert_eq!(forgotten.expect("no fault"), Forgotten::Yes);
    for node in &nodes {
        is_free(node).await;
    }
}

/// A node that does not answer the first record.
#[derive(Debug)]
struct SilentOnce {
    node: Arc<MemoryStore>,
    was_silent: AtomicBool,
}

impl Between for SilentOnce {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        let is_record = matches!(operation, Operation::Remember(..));
        if is_record && !self.was_silent.swap(true, Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.node.execute(operation, lane).await
    }
}

/// The caller has given the first one up, so the record is sent again.
#[tokio::test]
async fn a_record_that_is_sent_again_does_not_arrive_behind_a_late_vote() {
    let nodes = nodes();
    let far = Far::new(&nodes[2], is_of_an_owner);
    let silent = Arc::new(SilentOnce {
        node: Arc::clone(&nodes[1]),
        was_silent: AtomicBool::new(false),
    });
    let stores: [Arc<dyn Store>; 3] = [nodes[0].clone(), silent.clone(), far.clone()];
    let one = manager_on(stores.to_vec(), Duration::from_secs(60)).await;
    let two = manager_with_one(&nodes, 2, nodes[2].clone()).await;
    let guard = one.lock("k").acquire().await.expect("free");
    let a_minute = Duration::from_secs(60);
    guard.remember("the answer", a_minute).expect("in bounds");
    let lock = guard.handle();
    tokio::select! {
        biased;
        _ = guard.release() => panic!("one node does not answer"),
        () = std::future::ready(()) => {}
    }
    assert!(silent.was_silent.load(Ordering::Relaxed));
    while lock.record_outcome() != Some(RecordOutcome::Stored) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(two.forget("k").await.expect("no fault"), Forgotten::Yes);
    far.arrive.send_replace(true);
    reaches(&far.arrived, |arrived| *arrived > 0).await;
    is_free(&nodes[2]).await;
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

/// A node whose key is taken again as soon as the record before is withdrawn.
#[derive(Debug)]
struct TakenAgain(Arc<MemoryStore>);

impl Between for TakenAgain {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.0
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        let withdraws = matches!(operation, Operation::Vote(VoteOperation::Withdraw(..)));
        let outcome = self.0.execute(operation, lane).await;
        if withdraws {
            take(&self.0, TokenSource::new(Address::random()).fresh()).await;
        }
        outcome
    }
}

#[tokio::test]
async fn a_record_was_deleted_although_the_key_is_taken_before_the_nodes_are_asked_again() {
    let mut stores = Vec::new();
    for node in nodes() {
        leave_a_record(&node).await;
        stores.push(Arc::new(TakenAgain(node)) as Arc<dyn Store>);
    }
    let locks = manager_on(stores, Duration::from_secs(60)).await;
    assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Yes);
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
