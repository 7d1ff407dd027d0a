//! Tests of nodes that owe an answer when the attempt has failed, or when its caller has given a round up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::proposal_number::register_of;
use super::test_nodes::{Between, acquiring, manager_on, one_node, take};
use super::undo::Undoing;
use crate::base::clock::Clock;
use crate::base::sync::lock;
use crate::base::token::{Address, Token, TokenSource};
use crate::store::vote::{Propose, Vote, VoteOperation, VoteOutcome, Withdrawal};
use crate::store::{
    AcquireCommand, Extension, Failure, Lane, MemoryStore, Operation, Outcome, Queueing, Release,
    Store,
};
use crate::timer::Timers;

const PATIENCE: Duration = Duration::from_secs(20);
const TTL: Duration = Duration::from_secs(60);

/// A node whose second proposal stays on its way for a while. A withdrawal meanwhile never arrives.
#[derive(Debug)]
struct Slow {
    node: Arc<MemoryStore>,
    proposals: AtomicUsize,
    is_slow: watch::Sender<bool>,
    met: Notify,
    late: Mutex<Option<Operation>>,
}

impl Between for Slow {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        match &operation {
            Operation::Vote(VoteOperation::Propose(_))
                if self.proposals.fetch_add(1, Ordering::SeqCst) == 1 =>
            {
                self.is_slow.send_replace(true);
                self.met.notify_one();
                let mut slow = self.is_slow.subscribe();
                slow.wait_for(|slow| !slow).await.expect("it is here");
            }
            Operation::Vote(VoteOperation::Withdraw(..)) if *self.is_slow.borrow() => {
                lock(&self.late).get_or_insert_with(|| operation.clone());
                std::future::pending::<()>().await;
            }
            _ => {}
        }
        self.node.execute(operation, lane).await
    }
}

/// The node's register knows a number far in the future, of a lease that is over.
async fn has_a_high_number(node: &Arc<MemoryStore>, token: Token) {
    let propose = VoteOperation::Propose(Propose {
        acquire: AcquireCommand {
            key: "k".into(),
            token,
            ttl: TTL,
            queueing: Queueing::Never,
            replaces: None,
            repeated: false,
        },
        register: register_of("k"),
        number: 1 << 51,
        max_ttl: TTL,
    });
    let withdraw = Release {
        key: "k".into(),
        token,
        ttl: TTL,
        fence: None,
        in_background: false,
    };
    let vote = node.execute(Operation::Vote(propose), Lane::KEEPER).await;
    let accepted = VoteOutcome::voted(Vote::Yes {
        accepted: true,
        highest: 1 << 51,
    });
    assert_eq!(
        format!("{vote:?}"),
        format!("{:?}", Outcome::Vote(accepted))
    );
    let withdraw = VoteOperation::Withdraw(withdraw, Withdrawal::Over, None);
    node.execute(Operation::Vote(withdraw), Lane::KEEPER).await;
}

#[tokio::test]
async fn a_vote_is_not_taken_back_beside_a_question_whose_answer_will_count() {
    let nodes: [Arc<MemoryStore>; 3] = std::array::from_fn(|_| MemoryStore::new(Clock::default()));
    let slow = Arc::new(Slow {
        node: Arc::clone(&nodes[0]),
        proposals: AtomicUsize::new(0),
        is_slow: watch::Sender::new(false),
        met: Notify::new(),
        late: Mutex::default(),
    });
    let stores: [Arc<dyn Store>; 3] = [
        Arc::clone(&slow) as _,
        Arc::clone(&nodes[1]) as _,
        Arc::clone(&nodes[2]) as _,
    ];
    let locks = manager_on(stores.into(), TTL).await;
    let strangers = TokenSource::new(Address::random());
    for node in &nodes[..2] {
        has_a_high_number(node, strangers.fresh()).await;
    }
    // So a majority must be asked twice, and the third node is another owner's.
    assert!(take(&nodes[2], strangers.fresh()).await);
    let waiter = tokio::spawn(locks.lock("k").acquire());
    slow.met.notified().await;
    let given_back = async {
        while nodes[1].counts().0 > 0 {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, given_back)
        .await
        .expect("the attempt came to nothing");
    slow.is_slow.send_replace(false);
    let guard = timeout(PATIENCE, waiter).await.expect("a majority is free");
    let guard = guard.expect("no panic").expect("free");
    // The old question arrives after all.
    let late = lock(&slow.late).take();
    if let Some(late) = late {
        slow.node.execute(late, Lane::KEEPER).await;
    }
    for node in &nodes {
        let free = take(node, strangers.fresh()).await;
        assert!(!free, "a vote was undone, and still counts");
    }
    assert!(guard.is_valid());
}

/// The time after which the caller gives an answer up. A round waits longer for its nodes.
const SHORT: Duration = Duration::from_millis(50);

/// A node whose proposals wait until it is reached.
#[derive(Debug)]
struct Unreached {
    node: Arc<MemoryStore>,
    /// The node takes a proposal, and its answer never arrives.
    is_mute: bool,
    is_reached: watch::Sender<bool>,
    is_asked: watch::Sender<bool>,
}

impl Between for Unreached {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        if let Operation::Vote(VoteOperation::Propose(_)) = &operation {
            self.is_asked.send_replace(true);
            let mut reached = self.is_reached.subscribe();
            reached
                .wait_for(|reached| *reached)
                .await
                .expect("it is here");
            let answer = self.node.execute(operation, lane).await;
            return match self.is_mute {
                true => Outcome::Failed(Failure::unanswered("the connection broke")),
                false => answer,
            };
        }
        self.node.execute(operation, lane).await
    }
}

#[tokio::test]
async fn a_node_is_asked_again_after_the_caller_gave_up_its_first_question() {
    let nodes: [Arc<MemoryStore>; 3] = std::array::from_fn(|_| MemoryStore::new(Clock::default()));
    let unreached = [0, 1].map(|node| {
        Arc::new(Unreached {
            node: Arc::clone(&nodes[node]),
            is_mute: false,
            is_reached: watch::Sender::new(false),
            is_asked: watch::Sender::new(false),
        })
    });
    let stores: [Arc<dyn Store>; 3] = [
        Arc::clone(&unreached[0]) as _,
        Arc::clone(&unreached[1]) as _,
        Arc::clone(&nodes[2]) as _,
    ];
    let locks = manager_on(stores.into(), TTL).await;
    let request = locks.lock("k").acquire_timeout(SHORT).wait(PATIENCE);
    let waiter = tokio::spawn(request.acquire());
    for node in &unreached {
        let mut asked = node.is_asked.subscribe();
        let asked = asked.wait_for(|asked| *asked);
        timeout(PATIENCE, asked)
            .await
            .expect("asked")
            .expect("here");
    }
    sleep(3 * SHORT).await;
    for node in &unreached {
        node.is_reached.send_replace(true);
    }
    let guard = timeout(2 * PATIENCE, waiter).await.expect("an answer");
    let guard = guard.expect("no panic").expect("a majority is free");
    assert!(guard.is_valid());
}

/// The queue closes a lease whose task is not polled, and undoes its question. Another thread may poll the task at that moment.
#[tokio::test]
async fn a_question_that_is_undone_before_its_answers_are_counted_leaves_no_vote() {
    // The first one counts before the majority is there.
    let nodes = [true, false, false].map(|is_mute| {
        Arc::new(Unreached {
            node: MemoryStore::new(Clock::default()),
            is_mute,
            is_reached: watch::Sender::new(false),
            is_asked: watch::Sender::new(false),
        })
    });
    let stores = nodes.iter().map(|node| Arc::clone(node) as _).collect();
    let locks = manager_on(stores, TTL).await;
    let store = &locks.engine().store;
    let token = TokenSource::new(Address::random()).fresh();
    let mut question = store.execute(acquiring(token), Lane::KEEPER);
    let are_asked = async {
        for node in &nodes {
            let mut asked = node.is_asked.subscribe();
            asked.wait_for(|asked| *asked).await.expect("here");
        }
    };
    tokio::select! {
        _ = &mut question => panic!("no node has answered"),
        () = are_asked => {}
    }
    let release = Operation::Release(Release {
        key: "k".into(),
        token,
        ttl: TTL,
        fence: None,
        in_background: true,
    });
    store.execute(release.clone(), Lane::KEEPER).await;
    for node in &nodes {
        node.is_reached.send_replace(true);
    }
    let answer = timeout(PATIENCE, question).await.expect("an answer");
    assert!(matches!(answer, Outcome::Granted(_)), "{answer:?}");
    // The lease is closed, so its attempt gives back the grant too.
    store.execute(release, Lane::KEEPER).await;
    let given_back = async {
        while nodes.iter().any(|node| node.node.counts().0 > 0) {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, given_back)
        .await
        .expect("no vote is left");
}

/// Such a node is not asked for the lease for seconds. A waiter that hears of it asks with another one.
#[test]
fn an_attempt_says_that_hints_withdraw_its_votes() {
    let store = one_node(&Timers::new(Clock::default()));
    let lease = Extension {
        key: "k".into(),
        token: TokenSource::new(Address::random()).fresh(),
        ttl: TTL,
    };
    let ledger = Arc::default();
    let undoing = Undoing::new(&lease.acquire(), &ledger, Lane::KEEPER);
    assert!(ledger.claim(0));
    ledger.is_taken_back(0);
    assert!(!ledger.may_come_late(), "a task withdraws it at once");
    store.quorum.keep_hint(0, &undoing);
    assert!(ledger.may_come_late());
    ledger.resolved(0);
    assert!(!ledger.may_come_late(), "the hint is delivered");
}
