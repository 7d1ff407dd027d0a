//! Tests an operator on a real server: holders that are stopped or killed, a full server, and shares.

mod cards;
mod holders;
mod lists;
mod orders;
mod shares;

use lock_core::Error;
use lock_core::operator::{Forced, Holder, HolderProcess, Inspection, Operator};
use lock_tests::{RedisServer, wait};

use super::{asked, its_turn, kind, long, manager, served, taken};

const LOCK: &str = "lockkit:k";
const MARK: &str = "lockkit:!f";
const QUEUE: &str = "lockkit:!q:{k}";

/// Returns an operator on a manager of its own.
async fn operator(server: &RedisServer) -> Operator {
    manager(&server.url()).await.operator("ops@example")
}

async fn seen(operator: &Operator) -> Inspection {
    operator.inspect("k").await.expect("the server answers")
}

/// Returns the only holder of the key.
async fn holder(operator: &Operator) -> Holder {
    let seen = seen(operator).await;
    let [holder] = seen.holders() else {
        panic!("{seen:?}");
    };
    holder.clone()
}

/// Waits until the holder of the key answers.
async fn answers(operator: &Operator) {
    wait::eventually("the holder answers", async || {
        holder(operator).await.process() == HolderProcess::Holds
    })
    .await;
}

async fn forced(operator: &Operator, holder: &Holder) -> Result<Forced, Error> {
    operator.force(holder).because("it hangs").await
}

/// Returns the high-water mark.
fn mark(server: &RedisServer) -> u64 {
    let mark = server.get(MARK).expect("a mark");
    mark.parse().expect("a number")
}

/// Returns the server's clock in microseconds.
fn clock(server: &RedisServer) -> u64 {
    let time = server.cli(&["TIME"]);
    let mut parts = time
        .lines()
        .map(|part| part.parse::<u64>().expect("a number"));
    let mut part = || parts.next().expect("two numbers");
    part() * 1_000_000 + part()
}
