//! Tests waiters that are given up while the slot of their key moves.

use std::time::Duration;

use lock_tests::{needs, wait};
use tokio::time::sleep;

use super::migration::Move;
use super::{long, manager, taken, waits};
use crate::conformance::shared_cluster;

#[tokio::test]
async fn while_its_slot_moves_a_waiter_leaves_its_queue_on_a_node_that_its_runtime_is_not_connected_to()
 {
    needs!(redis);
    let cluster = shared_cluster();
    let (locks, other) = (manager(cluster).await, manager(cluster).await);
    let guard = taken(&locks, "{given up}", long()).await;
    let waiter = waits(cluster, &other, "{given up}", 1).await;
    let queue = "lockkit:!qt:{given up}";
    let moving = Move::begin(cluster, "lockkit:{given up}");
    moving.keys_move(queue);
    waiter.abort();
    assert!(waiter.await.is_err_and(|error| error.is_cancelled()));
    // Its process sends the request that takes it out. A second later it would look after the queue in any case.
    sleep(Duration::from_millis(100)).await;
    moving.end();
    wait::eventually("the waiter has left the queue", async || {
        cluster.cli(queue, &["EXISTS", queue]) == "0"
    })
    .await;
    guard.release().await.expect("held");
}
