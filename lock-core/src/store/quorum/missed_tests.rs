//! Tests of releases that a node misses: it gets them when it answers again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::test_nodes::{Between, manager_on, take};
use super::{QuorumNode, QuorumStore};
use crate::base::clock::Clock;
use crate::base::settings::Settings;
use crate::base::token::{Address, Token, TokenSource};
use crate::store::{Events, Lane, MemoryStore, Operation, Outcome, Release, Store};
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

    /// Waits until the node, which answers again, is without the key.
    async fn is_made_up_for(&self) {
        self.mute.answers.send_replace(true);
        let free = async {
            while self.mute.node.counts().0 > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let free = tokio::time::timeout(Duration::from_secs(20), free).await;
        free.expect("the key is gone");
    }
}

/// Sends the background release of a lease.
async fn release(store: &dyn Store, token: Token) -> Outcome {
    let release = Operation::Release(Release {
        key: "k".into(),
        token,
        ttl: Duration::from_secs(60),
        fence: None,
        in_background: true,
    });
    store.execute(release, Lane::KEEPER).await
}

/// An attempt forgets its votes when it gives up, and its undoing may never have been sent.
#[tokio::test]
async fn a_node_that_is_out_gets_the_release_of_a_lease_whose_votes_are_forgotten() {
    let scene = OneMute::new();
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
    let manager = Address::random();
    let store = QuorumStore::new(
        scene.stores.iter().enumerate().map(node).collect(),
        settings,
        &Timers::new(Clock::default()),
        TokenSource::new(manager),
    );
    let background = Arc::clone(&store).background(Events::new(manager, None, drop));
    tokio::spawn(background);
    store.ready().await.expect("nodes that answer");
    let token = TokenSource::new(Address::random()).fresh();
    assert!(take(&scene.mute.node, token).await);
    scene.mute.answers.send_replace(false);
    store.quorum.nodes[0].is_silent();
    release(&*store, token).await;
    scene.is_made_up_for().await;
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
