//! A service behind the layer, on a real socket, whose handler does what a test tells it to.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::wait;
use lock_tower::{LockContext, LockLayer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A server in this process, ended when this is dropped; its handlers run on.
pub(super) struct Server {
    locks: LockManager,
    port: u16,
    serving: JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(locks: LockManager, layer: LockLayer, gate: &Gate) -> Server {
        let gate = gate.clone();
        let create = move |lock: LockContext| async move {
            gate.pass(lock).await;
            (StatusCode::CREATED, "an order")
        };
        let app = Router::new()
            .route("/orders", post(create).get(async || "orders"))
            .route_layer(layer);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let serving = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("it serves");
        });
        Server {
            locks,
            port,
            serving,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn locks(&self) -> &LockManager {
        &self.locks
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Holds handlers back until a test lets them through, counts them, and keeps their last lock.
#[derive(Clone)]
pub(super) struct Gate(Arc<Inner>);

struct Inner {
    entered: watch::Sender<usize>,
    ended: watch::Sender<usize>,
    lock: watch::Sender<Option<LockContext>>,
    permits: Semaphore,
}

impl Gate {
    pub(super) fn closed() -> Gate {
        Gate(Arc::new(Inner {
            entered: watch::Sender::new(0),
            ended: watch::Sender::new(0),
            lock: watch::Sender::new(None),
            permits: Semaphore::new(0),
        }))
    }

    pub(super) fn open() -> Gate {
        let gate = Gate::closed();
        gate.let_through(Semaphore::MAX_PERMITS);
        gate
    }

    pub(super) fn let_through(&self, handlers: usize) {
        self.0.permits.add_permits(handlers);
    }

    /// Until so many handlers have begun; the lock of the last one.
    pub(super) async fn entered(&self, handlers: usize) -> LockContext {
        reaches(&self.0.entered, handlers).await;
        self.0
            .lock
            .borrow()
            .clone()
            .expect("set before it is counted")
    }

    /// Until so many handlers have come to their end.
    pub(super) async fn ended(&self, handlers: usize) {
        reaches(&self.0.ended, handlers).await;
    }

    pub(super) fn counts(&self) -> (usize, usize) {
        (*self.0.entered.borrow(), *self.0.ended.borrow())
    }

    async fn pass(&self, lock: LockContext) {
        self.0.lock.send_replace(Some(lock));
        self.0.entered.send_modify(|count| *count += 1);
        let permit = self.0.permits.acquire().await.expect("never closed");
        permit.forget();
        self.0.ended.send_modify(|count| *count += 1);
    }
}

async fn reaches(counter: &watch::Sender<usize>, handlers: usize) {
    let mut counter = counter.subscribe();
    let reached = timeout(wait::PATIENCE, counter.wait_for(|&count| count >= handlers));
    let in_time = reached.await.is_ok();
    assert!(in_time, "waited in vain for handler {handlers}");
}
