//! Tests records that need a node whose vote is still open, because another node fails or is slow.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{Far, is_free, is_of_an_owner, nodes, reaches};
use crate::api::handle::LockHandle;
use crate::api::manager::LockManager;
use crate::base::error::Error;
use crate::base::options::Wait;
use crate::base::record::RecordOutcome;
use crate::base::settings::Settings;
use crate::base::token::{Address, TokenSource};
use crate::store::quorum::test_nodes::{Between, manager_with, take};
use crate::store::vote::VoteOperation;
use crate::store::{Failure, Lane, MemoryStore, Operation, Outcome, Store};

const A_MINUTE: Duration = Duration::from_secs(60);

/// What a node does with a record.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Treatment {
    Stores,
    Fails,
    IsSilent,
}

/// A node that gets records, and first lets the late vote of another node arrive, if there is one.
#[derive(Debug)]
struct Troubled {
    node: Arc<MemoryStore>,
    treatment: Treatment,
    before: Option<Arc<Far>>,
    records: AtomicUsize,
}

impl Between for Troubled {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        if !matches!(operation, Operation::Remember(..)) {
            return self.node.execute(operation, lane).await;
        }
        self.records.fetch_add(1, Ordering::SeqCst);
        if let Some(far) = &self.before {
            far.arrive.send_replace(true);
            reaches(&far.arrived, |arrived| *arrived > 0).await;
            // A withdrawal that the vote brings about is faster.
            sleep(Duration::from_millis(20)).await;
        }
        match self.treatment {
            Treatment::Stores => self.node.execute(operation, lane).await,
            Treatment::Fails => Outcome::Failed(Failure::unanswered("the connection has ended")),
            Treatment::IsSilent => pending().await,
        }
    }
}

fn is_of_a_vote(operation: &Operation) -> bool {
    matches!(operation, Operation::Vote(VoteOperation::Propose(_)))
}

async fn manager(stores: [Arc<dyn Store>; 3]) -> LockManager {
    let settings = Settings {
        defaults: (A_MINUTE, Wait::Forever),
        operation_timeout: Duration::from_secs(2),
        ..Settings::default()
    };
    manager_with(stores.to_vec(), settings).await
}

/// Takes the key while the vote of the far node is open, and leaves a record in it.
async fn leaves_the_answer(locks: LockManager) -> (LockHandle, Result<(), Error>) {
    let guard = locks.lock("k").acquire().await.expect("free");
    guard.remember("the answer", A_MINUTE).expect("in bounds");
    let lock = guard.handle();
    (lock, guard.release().await)
}

/// A record is sent to a node in trouble, to a good one, and then to one whose vote arrives before the record.
async fn is_stored_behind_an_open_vote(treatment: Treatment) {
    let nodes = nodes();
    let far = Far::new(&nodes[2], is_of_an_owner);
    let troubled = Arc::new(Troubled {
        node: Arc::clone(&nodes[1]),
        treatment,
        before: None,
        records: AtomicUsize::new(0),
    });
    let locks = manager([nodes[0].clone(), troubled.clone(), far.clone()]).await;
    let release = tokio::spawn(leaves_the_answer(locks));
    let both_sent = reaches(&far.sent, |sent| *sent >= 2);
    let both_sent = timeout(Duration::from_secs(10), both_sent).await;
    both_sent.expect("the record is sent behind the vote");
    far.arrive.send_replace(true);
    let (lock, released) = release.await.expect("no panic");
    released.expect("two nodes have the record");
    assert_eq!(lock.record_outcome(), Some(RecordOutcome::Stored));
    assert_eq!(troubled.records.load(Ordering::SeqCst), 1, "it is one call");
}

#[tokio::test]
async fn a_record_that_one_node_fails_is_sent_behind_an_open_vote() {
    is_stored_behind_an_open_vote(Treatment::Fails).await;
}

#[tokio::test]
async fn a_record_is_sent_behind_an_open_vote_while_one_node_is_silent() {
    is_stored_behind_an_open_vote(Treatment::IsSilent).await;
}

/// The vote of one node arrives while another one has the record.
async fn votes_late(treatment: Treatment) -> (Arc<MemoryStore>, LockHandle, Result<(), Error>) {
    let nodes = nodes();
    let far = Far::new(&nodes[2], is_of_a_vote);
    let troubled = Troubled {
        node: Arc::clone(&nodes[1]),
        treatment,
        before: Some(far.clone()),
        records: AtomicUsize::new(0),
    };
    let [one, _, last] = nodes;
    let locks = manager([one, Arc::new(troubled), far]).await;
    let (lock, released) = leaves_the_answer(locks).await;
    (last, lock, released)
}

#[tokio::test]
async fn a_vote_that_arrives_while_the_record_is_on_its_way_is_left_to_the_record() {
    let (last, lock, released) = votes_late(Treatment::Fails).await;
    released.expect("two nodes have the record");
    assert_eq!(lock.record_outcome(), Some(RecordOutcome::Stored));
    let other = TokenSource::new(Address::random()).fresh();
    assert!(!take(&last, other).await, "the record is in the key");
}

#[tokio::test]
async fn a_vote_that_was_left_to_the_record_is_withdrawn_if_no_record_is_sent() {
    let (last, lock, released) = votes_late(Treatment::Stores).await;
    released.expect("two nodes have the record");
    assert_eq!(lock.record_outcome(), Some(RecordOutcome::Stored));
    is_free(&last).await;
}

/// A node whose votes are not heard, because its connection ends.
#[derive(Debug)]
struct Unheard(Arc<MemoryStore>);

impl Between for Unheard {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.0
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        let is_vote = is_of_a_vote(&operation);
        let outcome = self.0.execute(operation, lane).await;
        match is_vote {
            true => Outcome::Failed(Failure::unanswered("the connection has ended")),
            false => outcome,
        }
    }
}

#[tokio::test]
async fn a_vote_that_was_not_heard_is_withdrawn_if_no_record_is_sent() {
    let [one, two, last] = nodes();
    let unheard = Arc::new(Unheard(Arc::clone(&last)));
    let (_, released) = leaves_the_answer(manager([one, two, unheard]).await).await;
    released.expect("two nodes have the record");
    is_free(&last).await;
}
