//! A service of payments in two processes, and the requests of its clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::handler::Handler;
use axum::routing::post;
use axum::{Extension, Router};
use http::{HeaderMap, Request, StatusCode};
use lock_core::once::{Claim, Database};
use lock_core::test_util::ManualClock;
use lock_core::{LockManager, OperationId};
use lock_tests::wait;
use lock_tower::{
    KeyTemplate, LockLayer, Once, OnceTx, Refused, Rejection, RejectionKind, Replay, Replayed,
    Replaying,
};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower::ServiceExt;

use super::staged::Staged;
use crate::once::suite::Fixture;

/// The database of the layer.
pub(super) type Db<F> = Staged<<F as Fixture>::Db>;

pub(super) struct Stage<F: Fixture> {
    pub(super) fixture: F,
    pub(super) db: Db<F>,
    pub(super) locks: LockManager,
    pub(super) clock: ManualClock,
}

/// The user that the authentication has found.
#[derive(Clone)]
pub(super) struct User(pub(super) &'static str);

impl<F: Fixture + 'static> Stage<F> {
    pub(super) async fn start() -> Self {
        let fixture = F::start().await;
        let clock = ManualClock::new();
        let locks = LockManager::builder("memory:").clock(clock.clone());
        Self {
            db: Staged::new(fixture.db()),
            fixture,
            locks: locks.connect().await.expect("a manager"),
            clock,
        }
    }

    pub(super) fn layer(&self) -> LockLayer<Replaying> {
        self.layer_of(Replay::in_database(self.db.clone()))
    }

    pub(super) fn layer_of(&self, replay: Replay) -> LockLayer<Replaying> {
        layer(&self.locks, replay)
    }

    /// Returns the layer of another process, which shares the database and no lock.
    pub(super) fn other(&self) -> LockLayer<Replaying> {
        let db = Staged::new(self.fixture.other());
        layer(&LockManager::in_memory(), Replay::in_database(db))
    }

    /// Asserts how many effects and records there are.
    pub(super) async fn has(&self, effects: u64, records: u64) {
        let has = async { (self.fixture.effects().await, self.fixture.records().await) };
        let has = timeout(wait::PATIENCE, has).await;
        let has = has.expect("no transaction holds the connection");
        assert_eq!(has, (effects, records), "effects and records");
    }
}

/// Returns the key of a payment.
pub(super) fn key() -> KeyTemplate {
    named("pay:")
}

/// Returns a key of the user and the request.
pub(super) fn named(name: &'static str) -> KeyTemplate {
    let template = KeyTemplate::new(format!("{name}<ext.user>:<idempotency-key>"));
    template.extension("user", |user: &User| user.0)
}

fn layer(locks: &LockManager, replay: Replay) -> LockLayer<Replaying> {
    let layer = LockLayer::template(locks.clone(), key()).expect("a template");
    let layer = layer.replay(replay).expect("settings within bounds");
    // A manual clock ends no lease by itself.
    layer.acquire_timeout(wait::PATIENCE)
}

pub(super) fn app<H, T>(layer: LockLayer<Replaying>, handler: H) -> Router
where
    H: Handler<T, ()>,
    T: 'static,
{
    let route = Router::new().route("/payments", post(handler));
    route.route_layer(layer).layer(Extension(User("alice")))
}

/// Pays, and answers with a number that no other run has.
pub(super) async fn pay<F: Fixture + 'static>(
    once: Once<Db<F>>,
    order: String,
) -> Result<(StatusCode, String), Refused> {
    let mut tx = once.begin().await?;
    let number = effect::<F, _>(&mut tx).await;
    Ok((StatusCode::CREATED, format!("{order} paid as {number}")))
}

/// Writes an effect, and returns its number.
pub(super) async fn effect<F, D>(tx: &mut OnceTx<D>) -> u64
where
    F: Fixture,
    D: Database<Connection = <F::Db as Database>::Connection>,
{
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let sql = format!("INSERT INTO effects VALUES ('layer {number}')");
    F::execute(&mut **tx, sql.leak())
        .await
        .expect("a new effect");
    number
}

pub(super) fn request(order: &'static str) -> Request<Body> {
    with_body(Body::from(order))
}

pub(super) fn with_body(body: Body) -> Request<Body> {
    let request = Request::post("/payments").header("idempotency-key", "k");
    request.body(body).expect("a request")
}

/// An answer that was read to its end.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
    kind: Option<RejectionKind>,
    replayed: bool,
}

/// Sends a request, as a server does.
pub(super) async fn send(app: &Router, request: Request<Body>) -> Reply {
    let response = timeout(wait::PATIENCE, app.clone().oneshot(request)).await;
    let response = response.expect("an answer in time");
    let (head, body) = response.unwrap_or_else(|never| match never {}).into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    Reply {
        status: head.status,
        headers: head.headers,
        text: String::from_utf8(body.to_vec()).expect("text"),
        kind: head.extensions.get().map(Rejection::kind),
        replayed: head.extensions.get::<Replayed>().is_some(),
    }
}

impl Reply {
    #[track_caller]
    pub(super) fn is(&self, status: u16) -> &Self {
        assert_eq!(
            (self.status.as_u16(), self.kind, self.replayed),
            (status, None, false),
            "{self:?}"
        );
        self
    }

    #[track_caller]
    pub(super) fn repeats(&self, first: &Self) {
        assert!(self.replayed && !first.replayed, "{self:?}");
        assert_eq!(self.headers["idempotency-replayed"], "true");
        assert_eq!((self.status, &self.text), (first.status, &first.text));
        let content = |reply: &Self| reply.headers.get("content-type").cloned();
        assert_eq!(content(self), content(first));
    }

    #[track_caller]
    pub(super) fn is_refused(&self, status: u16, code: &str) -> &Self {
        assert!(self.kind.is_some() && !self.replayed, "{self:?}");
        let problem: serde_json::Value = serde_json::from_str(&self.text).expect("a problem");
        let problem = (self.status.as_u16(), problem["code"].as_str());
        assert_eq!(problem, (status, Some(code)), "{self:?}");
        self
    }

    /// Asserts what `Retry-After` says.
    #[track_caller]
    pub(super) fn retries(&self, after: Option<&str>) {
        let header = self.headers.get("retry-after");
        assert_eq!(header.map(|value| value.to_str().expect("text")), after);
    }
}

/// A place at which handlers arrive and wait.
#[derive(Clone)]
pub(super) struct Gate {
    arrived: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self {
            arrived: Arc::new(Semaphore::new(0)),
            open: Arc::new(Semaphore::new(0)),
        }
    }

    /// Waits in a handler.
    pub(super) async fn pass(&self) {
        self.arrived.add_permits(1);
        self.open.acquire().await.expect("a gate").forget();
    }

    /// Waits until a handler has arrived.
    pub(super) async fn arrived(&self) {
        let arrived = timeout(wait::PATIENCE, self.arrived.acquire()).await;
        arrived.expect("a handler arrives").expect("open").forget();
    }

    /// Lets one handler pass.
    pub(super) fn open(&self) {
        self.open.add_permits(1);
    }
}

pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// Returns the claim of another run of the request.
pub(super) fn claim_of(locks: &LockManager) -> Claim {
    let operation = OperationId::new(locks.namespace(), ["pay:alice:k"]);
    Claim::new(operation, MINUTE).expect("a valid life")
}
