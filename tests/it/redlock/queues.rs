//! Tests the queues of servers that have refused a lock which a majority has granted.

use std::time::Duration;

use lock_core::{Interop, LockGuard, LockRequest, Wait};
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::{Nodes, long};

const QUEUE: &str = "lockkit:!q:{k}";

/// Acquires a lock that the middle one of three servers has refused, because a client of another library has the key there,
/// and ends it. The caller waited, so that server has put it into the queue.
async fn ends_beside_a_refusal(
    ask: impl FnOnce(LockRequest) -> LockRequest,
    end: impl FnOnce(&LockGuard),
) {
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    for node in &nodes.0[..2] {
        node.cli(&["SET", "lockkit:k", "stranger", "PX", "60000"]);
    }
    let request = ask(locks.lock("k").ttl(long())).wait(Wait::Forever);
    let waiter = tokio::spawn(request.acquire());
    let queued = |place: usize| nodes.0[place].cli(&["EXISTS", QUEUE]) == "1";
    wait::eventually("both servers have queued the caller", async || {
        queued(0) && queued(1)
    })
    .await;
    nodes.0[0].cli(&["DEL", "lockkit:k"]);
    let guard = timeout(wait::PATIENCE, waiter).await.expect("it polls");
    let guard = guard.expect("no panic").expect("a majority is free");
    end(&guard);
    guard.release().await.expect("held");
    wait::eventually("no server has the caller in its queue", async || {
        !(0..3).any(queued)
    })
    .await;
}

#[tokio::test]
async fn an_owner_that_leaves_a_cooldown_leaves_the_queue_of_a_server_that_had_refused_it() {
    needs!(redis);
    let minute = Duration::from_secs(60);
    ends_beside_a_refusal(|request| request, |guard| guard.cooldown(minute)).await;
}

#[tokio::test]
async fn an_owner_that_leaves_a_record_leaves_the_queue_of_a_server_that_had_refused_it() {
    needs!(redis);
    let remembers = |guard: &LockGuard| guard.remember("done", long()).expect("held");
    ends_beside_a_refusal(|request| request, remembers).await;
}

#[tokio::test]
async fn an_owner_that_leaves_a_gap_leaves_the_queue_of_a_server_that_had_refused_it() {
    needs!(redis);
    ends_beside_a_refusal(|request| request.interop(Interop::On), |_| {}).await;
}
