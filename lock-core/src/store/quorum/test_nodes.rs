//! Nodes with a test between them and their managers.
#![cfg_attr(
    not(feature = "test-util"),
    expect(dead_code, reason = "the tests of managers need the feature")
)]

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use super::{QuorumNode, QuorumStore};
use crate::api::manager::LockManager;
use crate::base::clock::Clock;
use crate::base::options::Wait;
use crate::base::settings::Settings;
use crate::base::token::{Address, Token, TokenSource};
use crate::engine::Engine;
use crate::store::{
    AcquireCommand, BoxFuture, Events, Failure, Lane, MemoryStore, Operation, Outcome, Queueing,
    Store,
};
use crate::timer::Timers;

/// An embedded node, and the test's treatment of the operations on their way to it.
pub(super) trait Between: Debug + Send + Sync {
    fn node(&self) -> &Arc<MemoryStore>;

    fn run(&self, operation: Operation, lane: Lane) -> impl Future<Output = Outcome> + Send;
}

impl<B: Between> Store for B {
    fn execute(&self, operation: Operation, lane: Lane) -> BoxFuture<'_, Outcome> {
        Box::pin(self.run(operation, lane))
    }

    fn background(self: Arc<Self>, events: Events) -> BoxFuture<'static, ()> {
        Arc::clone(self.node()).background(events)
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        self.node().ready()
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>> {
        self.node().ping()
    }
}

pub(super) async fn manager_on(stores: Vec<Arc<dyn Store>>, ttl: Duration) -> LockManager {
    manager_with(
        stores,
        Settings {
            defaults: (ttl, Wait::Forever),
            ..Settings::default()
        },
    )
    .await
}

pub(super) async fn manager_with(stores: Vec<Arc<dyn Store>>, settings: Settings) -> LockManager {
    let settings = Settings {
        assume_fresh: true,
        ..settings
    };
    let named = |(place, store): (usize, _)| QuorumNode {
        store,
        shown: place.to_string(),
    };
    let quorum = stores.into_iter().enumerate().map(named).collect();
    let locks = LockManager::of(Engine::start_quorum(quorum, settings).expect("a manager"));
    locks.ready().await.expect("nodes that answer");
    locks
}

/// A quorum of one node, to which nothing is sent.
pub(super) fn one_node(timers: &Arc<Timers>) -> Arc<QuorumStore> {
    let node = QuorumNode {
        store: MemoryStore::new(Clock::default()),
        shown: "0".to_owned(),
    };
    let names = TokenSource::new(Address::random());
    QuorumStore::new(vec![node], Settings::default(), timers, names)
}

pub(super) async fn take(node: &Arc<MemoryStore>, token: Token) -> bool {
    let outcome = node.execute(acquiring(token), Lane::KEEPER).await;
    matches!(outcome, Outcome::Granted(_))
}

pub(super) fn acquiring(token: Token) -> Operation {
    Operation::Acquire(AcquireCommand {
        key: "k".into(),
        token,
        ttl: Duration::from_secs(60),
        queueing: Queueing::Never,
        replaces: None,
        repeated: false,
    })
}
