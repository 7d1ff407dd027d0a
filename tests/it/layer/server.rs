//! Runs a service behind the layer on a real socket, with a handler that the test controls.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::wait;
use lock_tower::{LockContext, LockLayer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A server in this process. It ends when this value is dropped, and its handlers run on.
pub(super) struct Server {
    locks: LockManager,
    port: u16,
    serving: JoinHandle<()>,
    left: watch::Sender<usize>,
}

impl Server {
    /// Starts a server with a handler behind the gate.
    pub(super) async fn start(locks: LockManager, layer: LockLayer, gate: &Gate) -> Server {
        let gate = gate.clone();
        let create = move |lock: Option<LockContext>| async move {
            gate.pass(lock).await;
            (StatusCode::CREATED, "an order")
        };
        let app = Router::new()
            .route("/orders", post(create))
            .route_layer(layer);
        Server::serve(locks, app).await
    }

    /// Starts a server with any service.
    pub(super) async fn serve(locks: LockManager, app: Router) -> Server {
        let left = watch::Sender::new(0);
        let app = app.layer(from_fn({
            let left = left.clone();
            move |request: Request, next: Next| {
                let mut leaving = Leaving(Some(left.clone()));
                async move {
                    let response = next.run(request).await;
                    leaving.answered();
                    response
                }
            }
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        let serving = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("the server runs");
        });
        Server {
            locks,
            port,
            serving,
            left,
        }
    }

    /// Waits until the server has dropped this many requests whose clients had gone.
    pub(super) async fn left(&self, requests: usize) {
        reaches(&self.left, requests).await;
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

/// Counts a request that is dropped before its answer.
struct Leaving(Option<watch::Sender<usize>>);

impl Leaving {
    fn answered(&mut self) {
        self.0 = None;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(left) = self.0.take() {
            left.send_modify(|count| *count += 1);
        }
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

    /// Waits until this many handlers have begun, and returns the lock of the last one.
    pub(super) async fn entered(&self, handlers: usize) -> LockContext {
        let lock = self.entered_anyhow(handlers).await;
        lock.expect("the handler runs under a lock")
    }

    /// Waits in the same way for handlers of which the last one may have no lock.
    pub(super) async fn entered_anyhow(&self, handlers: usize) -> Option<LockContext> {
        reaches(&self.0.entered, handlers).await;
        self.0.lock.borrow().clone()
    }

    pub(super) fn counts(&self) -> (usize, usize) {
        (*self.0.entered.borrow(), *self.0.ended.borrow())
    }

    /// Holds a handler back. A test may call it in its own handlers too.
    pub(super) async fn pass(&self, lock: Option<LockContext>) {
        self.0.lock.send_replace(lock);
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
