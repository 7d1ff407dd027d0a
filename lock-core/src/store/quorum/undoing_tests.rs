//! Tests of votes of a held lease that are still to be withdrawn from an earlier attempt.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::test_nodes::{Between, manager_on, take};
use crate::api::guard::LockGuard;
use crate::api::manager::LockManager;
use crate::base::clock::Clock;
use crate::base::options::Wait;
use crate::base::sync::lock;
use crate::base::token::{Address, Token, TokenSource};
use crate::store::vote::{VoteOperation, VoteOutcome};
use crate::store::{Ended, Lane, MemoryStore, Operation, Outcome, Release, Store};

/// The delivery of the first undoing that is sent to a node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum UndoDelivery {
    /// Its connection breaks: it is sent once more, and the first copy is still on its way.
    Twice,
    /// It stays on its way.
    Late,
    /// It is answered at once, and the network delivers a copy of it later.
    Copied,
}

#[derive(Debug)]
struct Odd {
    node: Arc<MemoryStore>,
    undoing: UndoDelivery,
    late: Mutex<Option<Operation>>,
    met: Notify,
}

impl Between for Odd {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        if !matches!(operation, Operation::Vote(VoteOperation::Withdraw(..))) {
            return self.node.execute(operation, lane).await;
        }
        let first = {
            let mut late = lock(&self.late);
            let first = late.is_none();
            late.get_or_insert_with(|| operation.clone());
            first
        };
        self.met.notify_one();
        match self.undoing {
            UndoDelivery::Late => std::future::pending().await,
            UndoDelivery::Copied => self.node.execute(operation, lane).await,
            UndoDelivery::Twice if !first => self.node.execute(operation, lane).await,
            UndoDelivery::Twice => match self.node.execute(operation, lane).await {
                Outcome::Vote(VoteOutcome::Withdrawn {
                    released, notified, ..
                }) => Outcome::Vote(VoteOutcome::Withdrawn {
                    released,
                    notified,
                    repeated: true,
                }),
                outcome => outcome,
            },
        }
    }
}

impl Odd {
    async fn what_is_late_arrives(&self) {
        let late = lock(&self.late).clone().expect("something is late");
        self.node.execute(late, Lane::KEEPER).await;
    }
}

async fn give_back(node: &Arc<MemoryStore>, token: Token) {
    let release = Operation::Release(Release {
        key: "k".into(),
        token,
        ttl: Duration::from_secs(60),
        fence: None,
        in_background: false,
    });
    let outcome = node.execute(release, Lane::KEEPER).await;
    assert!(matches!(outcome, Outcome::Released(Ended::Yes)));
}

/// A lock that was granted by nodes 1 and 2, after an attempt in which node 0 had voted for it.
struct LateNode {
    nodes: [Arc<MemoryStore>; 3],
    odd: Arc<Odd>,
    strangers: TokenSource,
    guard: LockGuard,
    _locks: LockManager,
}

async fn after_a_split(undoing: UndoDelivery) -> LateNode {
    let nodes: [Arc<MemoryStore>; 3] = std::array::from_fn(|_| MemoryStore::new(Clock::default()));
    let odd = Arc::new(Odd {
        node: Arc::clone(&nodes[0]),
        undoing,
        late: Mutex::default(),
        met: Notify::new(),
    });
    let stores: [Arc<dyn Store>; 3] = [
        Arc::clone(&odd) as _,
        Arc::clone(&nodes[1]) as _,
        Arc::clone(&nodes[2]) as _,
    ];
    let locks = manager_on(stores.into(), Duration::from_secs(60)).await;

    // Two foreign owners have a node each, so it is a split vote, and the third vote is withdrawn for a while.
    let strangers = TokenSource::new(Address::random());
    let owners = [strangers.fresh(), strangers.fresh()];
    assert!(take(&nodes[1], owners[0]).await && take(&nodes[2], owners[1]).await);
    let waiter = tokio::spawn(locks.lock("k").acquire());
    odd.met.notified().await;
    give_back(&nodes[1], owners[0]).await;
    give_back(&nodes[2], owners[1]).await;
    let guard = waiter.await.expect("no panic").expect("free");
    LateNode {
        nodes,
        odd,
        strangers,
        guard,
        _locks: locks,
    }
}

#[tokio::test]
async fn a_vote_that_counts_is_not_undone_by_what_comes_late() {
    let scene = after_a_split(UndoDelivery::Twice).await;
    let counted = scene.guard.acks().granted();
    scene.odd.what_is_late_arrives().await;
    let mut have = 0;
    for node in &scene.nodes {
        have += u32::from(!take(node, scene.strangers.fresh()).await);
    }
    assert_eq!(have, counted, "a vote was undone, and still counts");
}

#[tokio::test]
async fn a_copy_of_an_undoing_leaves_the_newer_vote_alone() {
    let scene = after_a_split(UndoDelivery::Copied).await;
    let all = async {
        while scene.guard.acks().granted() < 3 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let all = tokio::time::timeout(Duration::from_secs(20), all).await;
    all.expect("all nodes agree in the end");
    scene.odd.what_is_late_arrives().await;
    for node in &scene.nodes {
        let free = take(node, scene.strangers.fresh()).await;
        assert!(!free, "a vote was undone, and still counts");
    }
    scene.guard.release().await.expect("held on all nodes");
    for node in &scene.nodes {
        assert_eq!(node.counts().0, 0, "a release takes back every vote");
    }
}

#[tokio::test]
async fn a_node_that_is_silent_keeps_no_others_vote() {
    let nodes: [Arc<MemoryStore>; 5] = std::array::from_fn(|_| MemoryStore::new(Clock::default()));
    let odd = Arc::new(Odd {
        node: Arc::clone(&nodes[0]),
        undoing: UndoDelivery::Late,
        late: Mutex::default(),
        met: Notify::new(),
    });
    let mut stores: Vec<Arc<dyn Store>> = vec![Arc::clone(&odd) as _];
    stores.extend(
        nodes[1..]
            .iter()
            .map(|node| Arc::clone(node) as Arc<dyn Store>),
    );
    let locks = manager_on(stores, Duration::from_secs(60)).await;
    let owner = TokenSource::new(Address::random()).fresh();
    for node in &nodes[2..] {
        assert!(take(node, owner).await);
    }
    // Two nodes are slow to vote, for an attempt that is over by then, and one of them is then silent.
    nodes[..2].iter().for_each(|node| node.set_hung(true));
    let refused = locks.lock("k").wait(Wait::None).acquire().await;
    assert_eq!(refused.expect_err("taken").kind(), crate::ErrorKind::Busy);
    nodes[..2].iter().for_each(|node| node.set_hung(false));
    let met = tokio::time::timeout(Duration::from_secs(20), odd.met.notified()).await;
    met.expect("the late vote of the one is taken back");
    let undone = async {
        while nodes[1].counts().0 > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let undone = tokio::time::timeout(Duration::from_secs(20), undone).await;
    undone.expect("the other one's vote is undone");
}
