//! Measures the CPU time of a request whose answer is recorded, against the same layer with a cooldown.
//!
//! The requests go directly into the service, one at a time or many at once. Request and answer have bodies
//! of 1 KiB each. Each request has its own key.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, StatusCode};
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::RedisServer;
use lock_tower::{LockLayer, Replay, Replayed};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::bars::Bars;
use crate::machine::{median, own_cpu};

const ROUNDS: usize = 60;
const TURN: usize = 256;
const CROWD: usize = 64;
const BODY: [u8; 1024] = [b'x'; 1024];
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn run(server: &RedisServer, bars: &mut Bars) {
    crate::machine::runtime().block_on(compare(server, bars));
}

async fn compare(server: &RedisServer, bars: &mut Bars) {
    let locks = LockManager::connect(&server.url()).await;
    let locks = locks.expect("a manager");
    let key = "pay:<header.x-user-id>:<idempotency-key>";
    // On a busy machine, a request waits for its turn instead of failing.
    let layer = || {
        LockLayer::template(locks.clone(), key)
            .expect("a template")
            .acquire_timeout(MINUTE)
    };
    let replay = Replay::default().lasting(MINUTE).caller_is_in_key();
    let cools = app().route_layer(layer().cooldown(MINUTE));
    let records = app().route_layer(layer().replay(replay).expect("in bounds"));

    println!("\n| a request with 1 KiB each way, CPU of the process | µs | × cooldown |");
    println!("| --- | --- | --- |");
    for (tasks, what) in [(1, "one at a time"), (CROWD, "64 at once")] {
        let mut turns: [Vec<f64>; 3] = Default::default();
        for round in 0..=ROUNDS {
            let keys = next_keys();
            let turn = [
                cpu_of(turn_of(&cools, tasks, next_keys(), false)).await,
                cpu_of(turn_of(&records, tasks, keys, false)).await,
                cpu_of(turn_of(&records, tasks, keys, true)).await,
            ];
            // The first round makes connections and loads scripts.
            if round > 0 {
                for (all, one) in turns.iter_mut().zip(turn) {
                    all.push(one);
                }
            }
        }
        let [cools, records, replays] = &turns;
        let times = |of: &[f64]| {
            let ratios = of.iter().zip(cools).map(|(of, cools)| of / cools);
            median(ratios.collect())
        };
        println!(
            "| with a cooldown, {what} | {:.1} | |",
            median(cools.clone())
        );
        for (name, of) in [("recorded", records), ("a duplicate", replays)] {
            let (cost, times) = (median(of.clone()), times(of));
            println!("| {name}, {what} | {cost:.1} | {times:.2} |");
        }
        if tasks == 1 {
            bars.at_most(
                "a recorded request × one with a cooldown",
                times(records),
                1.10,
            );
        }
    }
}

fn app() -> Router {
    let pay = async |_: Bytes| (StatusCode::CREATED, Bytes::from_static(&BODY));
    Router::new().route("/payments", post(pay))
}

/// Returns the first of a turn's keys, which no other turn has.
fn next_keys() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(TURN, Ordering::Relaxed)
}

async fn turn_of(app: &Router, tasks: usize, keys: usize, replayed: bool) {
    let share = TURN / tasks;
    let tasks: JoinSet<()> = (0..tasks)
        .map(|task| {
            let app = app.clone();
            let first = keys + task * share;
            async move {
                for key in first..first + share {
                    send(&app, key, replayed).await;
                }
            }
        })
        .collect();
    tasks.join_all().await;
}

async fn send(app: &Router, key: usize, replayed: bool) {
    let request = Request::post("/payments")
        .header("x-user-id", 42)
        .header("idempotency-key", key)
        .body(Body::from(Bytes::from_static(&BODY)))
        .expect("a request");
    let answer = app.clone().oneshot(request).await.expect("never fails");
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(answer.extensions().get::<Replayed>().is_some(), replayed);
    let body = to_bytes(answer.into_body(), BODY.len()).await;
    assert_eq!(body.expect("a body").len(), BODY.len());
}

/// Returns the CPU microseconds of the process for each request of a turn.
async fn cpu_of(turn: impl Future<Output = ()>) -> f64 {
    let before = own_cpu();
    turn.await;
    (own_cpu() - before).as_secs_f64() * 1e6 / TURN as f64
}
