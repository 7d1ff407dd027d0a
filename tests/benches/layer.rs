//! Measures the CPU time of a request with the layer and without it, on the same router.
//!
//! Requests go directly into the service, so that no HTTP is measured, one at a time or many at once.
//! Each is of another user, so that no request waits for another. The store is a real server, whose
//! own CPU time is not counted.

use std::ops::Range;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use lock_core::LockManager;
use lock_core::redis1::aio::MultiplexedConnection;
use lock_tests::RedisServer;
use lock_tower::LockLayer;
use tokio::task::JoinSet;
use tower::{Service, ServiceExt};
use tower_http::timeout::TimeoutLayer;

use crate::free_pair::{raw_connection, raw_pair};
use crate::machine::{median, own_cpu};

const ROUNDS: usize = 60;
/// The requests of a turn. A turn is so short that other load on the machine affects all sides alike.
const TURN: usize = 512;
/// The requests at once in the measurement of many.
const CROWD: usize = 64;

pub(crate) fn run(server: &RedisServer) {
    crate::machine::runtime().block_on(compare(server));
}

async fn compare(server: &RedisServer) {
    let redis = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    let embedded = LockManager::in_memory();
    let raw = raw_connection(server).await;

    let timeout =
        TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_secs(30));
    let plain = app();
    let with_timeout = app().route_layer(timeout);
    let on_embedded = app().route_layer(layer(&embedded));
    let on_redis = app().route_layer(layer(&redis));

    let mut turns: [Vec<f64>; 6] = Default::default();
    for round in 0..=ROUNDS {
        let turn = [
            cpu_of(requests(&plain)).await,
            cpu_of(requests(&with_timeout)).await,
            cpu_of(requests(&on_embedded)).await,
            cpu_of(requests(&on_redis)).await,
            cpu_of(raw_pairs(&raw)).await,
            cpu_of(kit_pairs(&redis)).await,
        ];
        // The first round makes connections and loads scripts.
        if round > 0 {
            for (all, one) in turns.iter_mut().zip(turn) {
                all.push(one);
            }
        }
    }
    print(&turns);

    let mut crowds: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let crowd = [
            cpu_of(many(|users| requests_of(plain.clone(), users))).await,
            cpu_of(many(|users| requests_of(on_redis.clone(), users))).await,
            cpu_of(many(|users| raw_pairs_of(raw.clone(), users))).await,
        ];
        for (all, one) in crowds.iter_mut().zip(crowd) {
            all.push(one);
        }
    }
    print_crowd(&crowds);
}

fn print_crowd([plain, on_redis, raw]: &[Vec<f64>; 3]) {
    let rounds = on_redis.iter().zip(plain).zip(raw);
    let beside = rounds.map(|((layer, plain), raw)| layer - plain - raw);
    println!("\n| {CROWD} requests at once, CPU of the process | µs a request |");
    println!("| --- | --- |");
    println!("| plain router | {:.1} |", median(plain.clone()));
    println!(
        "| with the lock layer, Redis, including round trips | {:.1} |",
        median(on_redis.clone())
    );
    println!(
        "| *no request*: raw SET NX PX + EVALSHA | {:.1} |",
        median(raw.clone())
    );
    println!(
        "| the layer, beside the router and the raw pair | {:.1} |",
        median(beside.collect())
    );
}

/// Prints the medians of the differences within each round.
fn print(turns: &[Vec<f64>; 6]) {
    let [plain, with_timeout, on_embedded, on_redis, raw, kit] = turns;
    let more = |of: &[f64], than: &[&[f64]]| {
        let rest = of.iter().enumerate().map(|(round, of)| {
            let less: f64 = than.iter().map(|than| than[round]).sum();
            of - less
        });
        median(rest.collect())
    };
    println!("\n| a request, CPU of the process | µs | more than plain |");
    println!("| --- | --- | --- |");
    for (name, of) in [
        ("plain router", plain),
        ("with tower-http's timeout", with_timeout),
        ("with the lock layer, embedded store", on_embedded),
        ("with the lock layer, Redis", on_redis),
    ] {
        println!(
            "| {name} | {:.1} | {:.1} |",
            median(of.clone()),
            more(of, &[plain])
        );
    }
    println!(
        "| *no request*: raw SET NX PX + EVALSHA | {:.1} | |",
        median(raw.clone())
    );
    println!(
        "| *no request*: the kit's acquire + release | {:.1} | |",
        median(kit.clone())
    );
    println!("\n| the layer on Redis, beside | µs of CPU a request (median of {ROUNDS}) |");
    println!("| --- | --- |");
    println!(
        "| the router and the raw pair | {:.1} |",
        more(on_redis, &[plain, raw])
    );
    println!(
        "| the router and the kit's pair | {:.1} |",
        more(on_redis, &[plain, kit])
    );
}

fn app() -> Router {
    let create = async || (StatusCode::CREATED, "an order");
    Router::new().route("/orders", post(create))
}

fn layer(locks: &LockManager) -> LockLayer {
    let key = "submit:<header.x-user-id>:<method>:<route>";
    LockLayer::template(locks.clone(), key).expect("a template")
}

/// Returns the CPU microseconds of the process for each request of a turn.
///
/// The time includes the keeper's thread.
async fn cpu_of(turn: impl Future<Output = ()>) -> f64 {
    let before = own_cpu();
    turn.await;
    (own_cpu() - before).as_secs_f64() * 1e6 / TURN as f64
}

async fn requests(app: &Router) {
    requests_of(app.clone(), 0..TURN).await;
}

/// Runs a turn in as many tasks as there are in a crowd.
async fn many<F>(act: impl Fn(Range<usize>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let share = TURN / CROWD;
    let tasks: JoinSet<()> = (0..CROWD)
        .map(|task| act(task * share..(task + 1) * share))
        .collect();
    tasks.join_all().await;
}

async fn requests_of(app: Router, users: Range<usize>) {
    let mut service = app.into_service::<Body>();
    for user in users {
        let request = Request::post("/orders")
            .header("x-user-id", user)
            .body(Body::empty())
            .expect("a request");
        let service = ServiceExt::<Request<Body>>::ready(&mut service)
            .await
            .expect("never fails");
        let answer = service.call(request).await.expect("never fails");
        assert_eq!(answer.status(), StatusCode::CREATED);
    }
}

async fn raw_pairs(connection: &MultiplexedConnection) {
    raw_pairs_of(connection.clone(), 0..TURN).await;
}

async fn raw_pairs_of(mut connection: MultiplexedConnection, users: Range<usize>) {
    for user in users {
        raw_pair(&mut connection, &format!("lockkit:raw:{user}"), user).await;
    }
}

async fn kit_pairs(locks: &LockManager) {
    for user in 0..TURN {
        let guard = locks
            .lock(format!("kit:{user}"))
            .acquire()
            .await
            .expect("free");
        guard.release().await.expect("held");
    }
}
