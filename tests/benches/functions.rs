//! Measures a call of a function with `#[idempotent]` against one with `#[distributed_lock]`.
//!
//! The calls come one at a time, and each has its own key. The result has 300 bytes.

use std::time::{Duration, Instant};

use lock_core::{Error, LockManager, distributed_lock, idempotent};
use lock_tests::RedisServer;

use crate::bars::Bars;
use crate::machine::median;

const ROUNDS: u32 = 60;
const TURN: u32 = 256;
/// The bar allows a record this time beside a tenth of a call, in µs.
const RECORD: f64 = 10.0;

pub(crate) fn run(server: &RedisServer, bars: &mut Bars) {
    crate::machine::runtime().block_on(compare(server, bars));
}

async fn compare(server: &RedisServer, bars: &mut Bars) {
    let locks = LockManager::connect(&server.url()).await;
    let locks = locks.expect("a manager");
    let mut turns: [Vec<f64>; 3] = Default::default();
    for round in 0..=ROUNDS {
        let (first, last) = (round * TURN, (round + 1) * TURN);
        let turn = [
            time_of(first..last, async |id| locked(&locks, id).await).await,
            time_of(first..last, async |id| once(&locks, id).await).await,
            time_of(first..last, async |id| once(&locks, id).await).await,
        ];
        // The first round makes connections and loads scripts.
        if round > 0 {
            for (all, one) in turns.iter_mut().zip(turn) {
                all.push(one);
            }
        }
    }
    let [locked, once, repeated] = turns.map(median);
    println!("\n| a call of a function, µs | locked | idempotent | repeated |");
    println!("| --- | --- | --- | --- |");
    println!("| one at a time | {locked:.1} | {once:.1} | {repeated:.1} |");
    bars.at_most(
        "(a call with `#[idempotent]` − 10 µs) × one with `#[distributed_lock]`",
        (once - RECORD) / locked,
        1.10,
    );
}

#[distributed_lock(key = "locked:<id>", manager = locks, ttl = "10s")]
async fn locked(locks: &LockManager, id: u32) -> Result<String, Error> {
    Ok("x".repeat(300))
}

#[idempotent(key = "once:<id>", manager = locks, ttl = "10s", remember = "1m")]
async fn once(locks: &LockManager, id: u32) -> Result<String, Error> {
    Ok("x".repeat(300))
}

/// Returns the µs of a call.
async fn time_of(
    ids: std::ops::Range<u32>,
    call: impl AsyncFn(u32) -> Result<String, Error>,
) -> f64 {
    let start = Instant::now();
    for id in ids {
        assert_eq!(call(id).await.expect("a result").len(), 300);
    }
    let each: Duration = start.elapsed() / TURN;
    each.as_secs_f64() * 1e6
}
