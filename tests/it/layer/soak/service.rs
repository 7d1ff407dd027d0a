//! Runs the service of the storm in a process of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::panic::resume_unwind;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::{ChildProcess, RedisServer, wait};
use lock_tower::LockContext;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use tower_http::catch_panic::CatchPanicLayer;

use super::ledger::{Ledger, Visit};
use crate::layer::hasty_layer;

const SERVICE: &str = "LOCK_TESTS_SOAK_SERVICE";

/// The protection of the service's handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The layer.
    Locked,
    /// The layer, with handlers that release their lock themselves and report the outcome.
    Reporting,
    /// No lock, to test that the checks find violations.
    Unlocked,
}

/// A running service.
pub(super) struct Service {
    process: ChildProcess,
    pub(super) port: u16,
}

impl Service {
    /// Starts two processes on one Redis.
    pub(super) fn pair(
        redis: &RedisServer,
        ledger: &Ledger,
        kind: Kind,
        ttl: Duration,
    ) -> [Service; 2] {
        [(); 2].map(|()| {
            let (ledger, ttl) = (ledger.port(), ttl.as_millis());
            let settings = format!("{} {ledger} {kind:?} {ttl}", redis.url());
            let test = "layer::soak::service::serves_until_told_to_end";
            Service::of(ChildProcess::of_test(test, &[(SERVICE, &settings)]))
        })
    }

    fn of(process: ChildProcess) -> Service {
        let port = process.tells("serving ").parse().expect("a port");
        Service { process, port }
    }

    /// Ends the process in order and checks that it reports nothing left.
    pub(super) async fn end(mut self) {
        self.process.terminate();
        wait::eventually("the process has ended", async || !self.process.is_running()).await;
        self.process.says("nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that other tests start"]
async fn serves_until_told_to_end() {
    let Ok(told) = std::env::var(SERVICE) else {
        return;
    };
    let told: Vec<&str> = told.split(' ').collect();
    let [redis, ledger, kind, ttl] = told[..] else {
        panic!("{told:?}");
    };
    let mut end = signal(SignalKind::terminate()).expect("a signal");
    let locks = LockManager::connect(redis).await.expect("a manager");
    let ttl = Duration::from_millis(ttl.parse().expect("milliseconds"));
    // A request that a thread puts into the channel of a connection while the connection's driver drops it has no answer, because
    // the channel of tokio keeps the request. The client must wait for longer.
    let layer = hasty_layer(&locks)
        .acquire_timeout(wait::PATIENCE / 2)
        .ttl(ttl);
    let orders = layer.in_flight();
    let shop = Shop {
        ledger: SocketAddr::from((Ipv4Addr::LOCALHOST, ledger.parse().expect("a port"))),
        reports: kind == "Reporting",
    };
    let app = Router::new().route("/orders", post(order).with_state(shop));
    let app = match kind {
        "Unlocked" => app,
        _ => app.route_layer(layer),
    };
    // This layer is outside the lock layer, so that a panic passes through the lock layer
    // before it becomes an answer.
    let app = app.layer(CatchPanicLayer::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("\nserving {}", listener.local_addr().expect("bound").port());
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            end.recv().await;
        })
        .await
        .expect("the server runs");
    let handlers = orders.drain(wait::PATIENCE).await;
    let left = locks.drain(wait::PATIENCE).await;
    match handlers == 0 && left.is_complete() {
        true => println!("\nnothing is left"),
        false => println!("\n{handlers} handlers and {left:?} are left"),
    }
}

#[derive(Clone, Copy)]
struct Shop {
    ledger: SocketAddr,
    reports: bool,
}

/// Reads the stock, works, and writes one less.
async fn order(
    State(shop): State<Shop>,
    headers: HeaderMap,
    lock: Option<LockContext>,
) -> (StatusCode, &'static str) {
    let told = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let user = told("x-user-id").expect("a user");
    let click = told("x-click").expect("a click");
    let fence = lock.as_ref().and_then(LockContext::fencing_token);
    let fence = fence.map(u64::from);
    let (mut visit, pieces) = Visit::begin(shop.ledger, user, click, fence).await;
    match (told("x-work").expect("work"), &lock) {
        ("until lost", Some(lock)) => {
            lock.lost().await;
            visit.say("lost").await;
        }
        (millis, lock) => {
            let work = Duration::from_millis(millis.parse().expect("milliseconds"));
            let lost = async {
                match lock {
                    Some(lock) => lock.lost().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = sleep(work) => {}
                () = lost => {
                    visit.say("lost").await;
                }
            }
        }
    }
    visit.say(&format!("write {}", pieces - 1)).await;
    visit.say("end").await;
    if told("x-panics").is_some() {
        // The handler unwinds as in a panic, but prints no message.
        resume_unwind(Box::new("the click has asked for a panic"));
    }
    if let (true, Some(lock)) = (shop.reports, &lock) {
        let how = match lock.release_now().await {
            Ok(()) => "released",
            Err(error) => error.code(),
        };
        visit.say(&format!("released {how}")).await;
    }
    (StatusCode::CREATED, "an order")
}
