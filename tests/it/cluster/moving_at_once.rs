//! Tests slots that move in one step, as Valkey 9 moves them.

use std::time::Instant;

use lock_core::Wait;
use lock_tests::{RedisCluster, RedisServer, needs, wait};

use super::migration::Move;
use super::{PATIENT, its_turn, manager, queued, taken};
use crate::steps::{OUTLIVED, once};

#[tokio::test]
async fn a_slot_that_moves_at_once_keeps_its_lock_its_waiter_and_its_high_water_mark() {
    needs!(redis);
    let cluster = RedisCluster::with(&RedisServer::options(), 2, PATIENT);
    let (locks, other) = (manager(&cluster).await, manager(&cluster).await);
    let name = "lockkit:{at once}";
    let mut last = once(&locks, "{at once}").await;
    // There, back, and there again.
    for _ in 0..3 {
        let guard = taken(&locks, "{at once}", OUTLIVED).await;
        assert!(guard.fencing_token() > last, "fencing tokens rise");
        let request = other.lock("{at once}").ttl(OUTLIVED).wait(Wait::Forever);
        let waiter = tokio::spawn(request.acquire());
        queued(&cluster, "{at once}", 1).await;
        let began = Instant::now();
        Move::at_once(&cluster, name);
        wait::eventually("the lock outlives its ttl", async || {
            began.elapsed() > OUTLIVED * 2 || !guard.is_valid()
        })
        .await;
        assert!(guard.is_valid() && !waiter.is_finished());
        last = guard.fencing_token();
        guard.release().await.expect("held");
        let next = its_turn(waiter).await;
        assert!(next.fencing_token() > last, "fencing tokens rise");
        last = next.fencing_token();
        next.release().await.expect("held");
    }
}
