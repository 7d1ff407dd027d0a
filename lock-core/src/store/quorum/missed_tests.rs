//! Tests of releases that a node misses: it gets them when it answers again.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::test_nodes::{Between, acquiring, manager_on, take};
use super::{QuorumNode, QuorumStore};
use crate::base::clock::{Clock, Moment};
use crate::base::record::Record;
use crate::base::settings::Settings;
use crate::base::sync::lock;
use crate::base::token::{Address, Token, TokenSource};
use crate::store::vote::VoteOperation;
use crate::store::{
    AcquireCommand, BoxFuture, Cooldown, Ended, Events, Failure, Lane, MemoryStore, Operation,
    Outcome, Queueing, Release, Remembered, Store,
};
use crate::timer::Timers;

/// A store that answers, or loses all that is sent to it.
#[derive(Debug)]
struct Mute {
    node: Arc<MemoryStore>,
    answers: watch::Sender<bool>,
}

impl Between for Mute {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        if !*self.answers.borrow() {
            return std::future::pending().await;
        }
        self.node.execute(operation, lane).await
    }
}

struct OneMute {
    mute: Arc<Mute>,
    stores: [Arc<dyn Store>; 3],
}

impl OneMute {
    fn new() -> Self {
        let mute = Arc::new(Mute {
            node: MemoryStore::new(Clock::default()),
            answers: watch::Sender::new(true),
        });
        let stores: [Arc<dyn Store>; 3] = [
            Arc::clone(&mute) as _,
            MemoryStore::new(Clock::default()),
            MemoryStore::new(Clock::default()),
        ];
        Self { mute, stores }
    }

    async fn quorum(&self) -> Arc<QuorumStore> {
        let manager = Address::random();
        let store = self.unconnected(manager);
        let background = Arc::clone(&store).background(Events::new(manager, None, drop));
        tokio::spawn(background);
        store.ready().await.expect("nodes that answer");
        store
    }

    fn unconnected(&self, manager: Address) -> Arc<QuorumStore> {
        let node = |(place, store): (usize, &Arc<dyn Store>)| QuorumNode {
            store: Arc::clone(store),
            shown: place.to_string(),
        };
        let settings = Settings {
            max_ttl: Duration::from_secs(60),
            assume_fresh: true,
            operation_timeout: Duration::from_millis(500),
            ..Settings::default()
        };
        QuorumStore::new(
            self.stores.iter().enumerate().map(node).collect(),
            settings,
            &Timers::new(Clock::default()),
            TokenSource::new(manager),
        )
    }

    /// The node answers nothing from here on, and is out.
    fn goes_out(&self, store: &QuorumStore) {
        self.mute.answers.send_replace(false);
        store.quorum.nodes[0].is_silent();
    }

    /// Waits until the node, which answers again, is without the key.
    async fn is_made_up_for(&self) {
        self.mute.answers.send_replace(true);
        self.has(|(keys, _)| keys == 0).await;
    }

    /// Waits until the node has so many keys and waiters.
    async fn has(&self, is_so: impl Fn((usize, usize)) -> bool) {
        let soon = async {
            while !is_so(self.mute.node.counts()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let soon = tokio::time::timeout(Duration::from_secs(20), soon).await;
        soon.expect("the node gets what it has missed");
    }
}

/// Sends the background release of a lease.
async fn release(store: &dyn Store, token: Token) -> Outcome {
    let release = Operation::Release(release_of(token));
    store.execute(release, Lane::KEEPER).await
}

fn release_of(token: Token) -> Release {
    Release {
        key: "k".into(),
        token,
        ttl: Duration::from_secs(60),
        fence: None,
        in_background: true,
    }
}

/// An attempt forgets its votes when it gives up, and its undoing may never have been sent.
#[tokio::test]
async fn a_node_that_is_out_gets_the_release_of_a_lease_whose_votes_are_forgotten() {
    let scene = OneMute::new();
    let store = scene.quorum().await;
    let token = TokenSource::new(Address::random()).fresh();
    assert!(take(&scene.mute.node, token).await);
    scene.goes_out(&store);
    release(&*store, token).await;
    scene.is_made_up_for().await;
}

/// A process that has just begun sends a release again until its nodes are connected.
#[tokio::test]
async fn a_node_that_is_out_gets_one_hint_for_a_release_that_is_sent_again() {
    let scene = OneMute::new();
    let store = scene.unconnected(Address::random());
    let tokens = TokenSource::new(Address::random());
    for token in [tokens.fresh(), tokens.fresh()] {
        for _ in 0..3 {
            let released = release(&*store, token).await;
            assert!(matches!(released, Outcome::Failed(_)), "{released:?}");
        }
    }
    for node in &store.quorum.nodes {
        assert_eq!(node.hints.take(Clock::default().now()).len(), 2);
    }
}

/// The caller of a release may give it up before the last node has answered.
#[tokio::test]
async fn a_silent_node_gets_a_release_that_was_given_up() {
    let scene = OneMute::new();
    let locks = manager_on(scene.stores.to_vec(), Duration::from_secs(60)).await;
    let guard = locks.lock("k").acquire().await.expect("free");
    while scene.mute.node.counts().0 == 0 {
        tokio::task::yield_now().await;
    }
    scene.mute.answers.send_replace(false);
    let store = Arc::clone(&locks.engine().store);
    let release = release(&*store, guard.handle().lease.token);
    let given_up = tokio::time::timeout(Duration::from_millis(50), release).await;
    given_up.expect_err("a node is silent");
    scene.is_made_up_for().await;
    drop(guard);
}

/// The entry of a waiter in the queue of a node has no end of its own, and this node does not get the record of the waiter.
#[tokio::test]
async fn a_node_that_misses_a_record_forgets_that_its_owner_has_waited() {
    let scene = OneMute::new();
    let store = scene.quorum().await;
    let tokens = TokenSource::new(Address::random());
    let (owner, waiter) = (tokens.fresh(), tokens.fresh());
    let a_minute = Duration::from_secs(60);
    let acquire = |token, queueing| {
        let acquire = AcquireCommand {
            key: "k".into(),
            token,
            ttl: a_minute,
            queueing,
            replaces: None,
            repeated: false,
        };
        store.execute(Operation::Acquire(acquire), Lane::KEEPER)
    };
    let granted = acquire(owner, Queueing::Never).await;
    assert!(matches!(granted, Outcome::Granted(_)));
    scene.has(|(keys, _)| keys == 1).await;
    let refused = acquire(waiter, Queueing::Always).await;
    assert!(matches!(refused, Outcome::Busy(_)));
    scene.has(|(_, waiters)| waiters == 1).await;
    scene.goes_out(&store);
    // No waiter is notified on the first node.
    for node in &scene.stores[1..] {
        release(&**node, owner).await;
    }
    let granted = acquire(waiter, Queueing::Always).await;
    assert!(matches!(granted, Outcome::Granted(_)));
    // So no majority has the record, which is sent again and needs the token.
    release(&*scene.stores[2], waiter).await;
    let remembered = remember(&*store, waiter).await;
    assert!(matches!(remembered, Outcome::Failed(_)), "{remembered:?}");
    assert_eq!(scene.mute.node.counts(), (1, 1));
    scene.mute.answers.send_replace(true);
    scene.has(|(_, waiters)| waiters == 0).await;
    assert_eq!(scene.mute.node.counts(), (1, 0));
}

fn remember(store: &dyn Store, token: Token) -> BoxFuture<'_, Outcome> {
    let a_minute = Duration::from_secs(60);
    let record = Record::checked(b"the answer".to_vec(), a_minute, a_minute).expect("in bounds");
    store.execute(Operation::Remember(release_of(token), record), Lane::KEEPER)
}

/// Ends a lease while a node is out, which must not keep the token: when a majority has the record or the cooldown, or has
/// lost the lock, the token has no use. Its votes may be forgotten, because the end was sent before.
async fn ends_without_a_node(end: impl AsyncFnOnce(&OneMute, &dyn Store, Token)) {
    let scene = OneMute::new();
    let store = scene.quorum().await;
    let token = TokenSource::new(Address::random()).fresh();
    for node in &scene.stores {
        node.execute(acquiring(token), Lane::KEEPER).await;
    }
    scene.goes_out(&store);
    end(&scene, &*store, token).await;
    scene.is_made_up_for().await;
}

#[tokio::test]
async fn a_node_that_misses_a_record_does_not_keep_the_token() {
    ends_without_a_node(async |_, store, token| {
        let remembered = remember(store, token).await;
        assert!(matches!(remembered, Outcome::Remembered(Remembered::Yes)));
    })
    .await;
}

#[tokio::test]
async fn a_node_that_misses_the_record_of_a_lost_lock_does_not_keep_the_token() {
    ends_without_a_node(async |scene, store, token| {
        for node in &scene.stores[1..] {
            release(&**node, token).await;
        }
        let remembered = remember(store, token).await;
        assert!(matches!(
            remembered,
            Outcome::Remembered(Remembered::Absent)
        ));
    })
    .await;
}

#[tokio::test]
async fn a_node_that_misses_a_cooldown_does_not_keep_the_token() {
    ends_without_a_node(async |_, store, token| {
        let cooled = cool(store, token).await;
        assert!(matches!(cooled, Outcome::Released(Ended::Yes)));
    })
    .await;
}

fn cool(store: &dyn Store, token: Token) -> BoxFuture<'_, Outcome> {
    let cooldown = Cooldown {
        span: Duration::from_secs(60),
        until_millis: 0,
    };
    store.execute(Operation::Cool(release_of(token), cooldown), Lane::KEEPER)
}

/// A node whose first cooldown is lost, for example because it does not have the script.
#[derive(Debug)]
struct LosesCooldown {
    node: Arc<MemoryStore>,
    has_lost: AtomicBool,
}

impl Between for LosesCooldown {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        if matches!(operation, Operation::Cool(..)) && !self.has_lost.swap(true, Relaxed) {
            return std::future::pending().await;
        }
        self.node.execute(operation, lane).await
    }
}

/// The caller of a release may give it up before its cooldown has arrived, and the keeper repeats it.
#[tokio::test]
async fn a_cooldown_that_was_given_up_finds_the_token_when_it_is_repeated() {
    let nodes = [(); 3].map(|()| LosesCooldown {
        node: MemoryStore::new(Clock::default()),
        has_lost: AtomicBool::new(false),
    });
    let stores = nodes.map(|node| Arc::new(node) as Arc<dyn Store>);
    let locks = manager_on(stores.to_vec(), Duration::from_secs(60)).await;
    let guard = locks.lock("k").acquire().await.expect("free");
    let store = Arc::clone(&locks.engine().store);
    let token = guard.handle().lease.token;
    let given_up = tokio::time::timeout(Duration::from_millis(50), cool(&*store, token)).await;
    given_up.expect_err("the nodes have lost it");
    // A hint would arrive meanwhile.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let repeated = cool(&*store, token).await;
    assert!(matches!(repeated, Outcome::Released(Ended::Yes)));
    drop(guard);
}

/// A node that withdraws nothing, because it lacks a replica, for example. It notes when it is asked to.
#[derive(Debug)]
struct Unwilling {
    node: Arc<MemoryStore>,
    asked: Mutex<Vec<Moment>>,
}

impl Between for Unwilling {
    fn node(&self) -> &Arc<MemoryStore> {
        &self.node
    }

    async fn run(&self, operation: Operation, lane: Lane) -> Outcome {
        match operation {
            Operation::Vote(VoteOperation::Withdraw(..)) => {
                lock(&self.asked).push(Clock::default().now());
                Outcome::Failed(Failure::refused("NOREPLICAS"))
            }
            operation => self.node.execute(operation, lane).await,
        }
    }
}

#[tokio::test]
async fn a_node_that_answers_and_refuses_a_release_is_asked_again_after_a_pause() {
    let unwilling = Arc::new(Unwilling {
        node: MemoryStore::new(Clock::default()),
        asked: Mutex::default(),
    });
    let others = [(); 2].map(|()| MemoryStore::new(Clock::default()) as Arc<dyn Store>);
    let mut stores = vec![Arc::clone(&unwilling) as Arc<dyn Store>];
    stores.extend(others);
    let locks = manager_on(stores, Duration::from_secs(60)).await;
    let guard = locks.lock("k").acquire().await.expect("free");
    guard.release().await.expect("two nodes have released it");
    // The release is the first question. The keeper asks at once, and then again and again.
    let asked = loop {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let asked = lock(&unwilling.asked).clone();
        if asked.len() >= 3 {
            break asked;
        }
    };
    let pause = asked[2].since(asked[1]);
    assert!(pause > Duration::from_millis(900), "{pause:?}");
}
