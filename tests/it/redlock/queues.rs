//! Tests the queues of servers that have refused a lock which a majority has granted.

use std::time::Duration;

use lock_core::{Interop, LockGuard, LockRequest, Wait};
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::{Nodes, long};

const QUEUE: &str = "lockkit:!q:{k}";

/// The server that has refused the lock takes or refuses writes at the end of the lock.
#[derive(Clone, Copy, PartialEq)]
enum Writes {
    Taken,
    /// The test ends this when the server has refused a write.
    Refused,
}

/// Acquires a lock that the middle one of three servers has refused, because a client of another library has the key there,
/// and ends it. The caller waited, so that server has put it into the queue.
async fn ends_beside_a_refusal(
    writes: Writes,
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
    let needs_replicas = |count| {
        nodes.0[1].cli(&["CONFIG", "SET", "min-replicas-to-write", count]);
    };
    if writes == Writes::Refused {
        needs_replicas("1");
    }
    guard.release().await.expect("held");
    if writes == Writes::Refused {
        wait::eventually("the server refuses to change its queue", async || {
            nodes.0[1]
                .info("errorstats")
                .contains_key("errorstat_NOREPLICAS")
        })
        .await;
        needs_replicas("0");
    }
    wait::eventually("no server has the caller in its queue", async || {
        !(0..3).any(queued)
    })
    .await;
}

fn cools(guard: &LockGuard) {
    guard.cooldown(Duration::from_secs(60));
}

fn remembers(guard: &LockGuard) {
    guard.remember("done", long()).expect("held");
}

#[tokio::test]
async fn an_owner_that_leaves_a_cooldown_leaves_the_queue_of_a_server_that_had_refused_it() {
    needs!(redis);
    ends_beside_a_refusal(Writes::Taken, |request| request, cools).await;
}

#[tokio::test]
async fn an_owner_that_leaves_a_record_leaves_the_queue_of_a_server_that_had_refused_it() {
    needs!(redis);
    ends_beside_a_refusal(Writes::Taken, |request| request, remembers).await;
}

#[tokio::test]
async fn an_owner_that_leaves_a_gap_leaves_the_queue_of_a_server_that_had_refused_it() {
    needs!(redis);
    let with_others = |request: LockRequest| request.interop(Interop::On);
    ends_beside_a_refusal(Writes::Taken, with_others, |_| {}).await;
}

#[tokio::test]
async fn an_owner_leaves_the_queue_of_a_server_that_refuses_writes_for_a_while() {
    needs!(redis);
    ends_beside_a_refusal(Writes::Refused, |request| request, |_| {}).await;
}

#[tokio::test]
async fn an_owner_that_leaves_a_cooldown_leaves_the_queue_of_a_server_that_refuses_writes_for_a_while()
 {
    needs!(redis);
    ends_beside_a_refusal(Writes::Refused, |request| request, cools).await;
}

#[tokio::test]
async fn an_owner_that_leaves_a_record_leaves_the_queue_of_a_server_that_refuses_writes_for_a_while()
 {
    needs!(redis);
    ends_beside_a_refusal(Writes::Refused, |request| request, remembers).await;
}
