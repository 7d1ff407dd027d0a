//! Tests an operator's order for a key whose slot moves.

use lock_core::operator::{Forced, Holder, HolderProcess, Operator};
use lock_core::{Error, ErrorKind, LockManager, LockRequest};
use lock_tests::{RedisCluster, needs, wait};
use tokio::time::timeout;

use super::migration::Move;
use super::{its_turn, long, manager, once, taken, waits};
use crate::conformance::shared_cluster;

async fn operator(cluster: &RedisCluster) -> Operator {
    manager(cluster).await.operator("ops@example")
}

/// Returns the holders, once each of their processes has answered.
async fn holders(operator: &Operator, key: &str, count: usize) -> Vec<Holder> {
    let mut holders = Vec::new();
    wait::eventually("the holders answer", async || {
        let seen = operator.inspect(key).await.expect("the cluster answers");
        holders = seen.holders().to_vec();
        let answers = holders.iter().map(Holder::process);
        answers.filter(|it| *it == HolderProcess::Holds).count() == count
    })
    .await;
    holders
}

async fn forced(operator: &Operator, holder: &Holder) -> Result<Forced, Error> {
    operator.force(holder).because("it hangs").await
}

fn reader(locks: &LockManager, key: &str) -> LockRequest {
    locks.lock(key).ttl(long()).read()
}

#[tokio::test]
async fn an_order_while_its_slot_moves_is_refused_and_changes_nothing_and_is_done_after_the_move() {
    needs!(redis);
    let cluster = shared_cluster();
    let (locks, operator) = (manager(cluster).await, operator(cluster).await);
    // No key has moved, the lock alone, and all keys of the slot.
    for (key, moves) in [
        ("{ordered}", None),
        ("{ordered-lock-that-moved}", Some("lockkit:{")),
        ("{ordered-slot-that-moved}", Some("")),
    ] {
        let name = format!("lockkit:{key}");
        once(&locks, key).await;
        let guard = taken(&locks, key, long()).await;
        let seen = holders(&operator, key, 1).await;
        let mark = operator.inspect(key).await.expect("it answers");
        let mark = mark.high_water_mark().expect("a lock was released");
        let value = cluster.cli(&name, &["GET", &name]);
        let moving = Move::begin(cluster, &name);
        if let Some(prefix) = moves {
            moving.keys_move(prefix);
        }
        let refused = forced(&operator, &seen[0]).await.expect_err("it moves");
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        assert!(refused.to_string().contains("moving"), "{refused}");
        moving.end();
        assert_eq!(cluster.cli(&name, &["GET", &name]), value);
        let after = operator.inspect(key).await.expect("it has moved");
        assert_eq!(after.high_water_mark(), Some(mark));
        assert!(guard.is_valid());
        let answer = forced(&operator, &seen[0]).await.expect("it has moved");
        assert_eq!(answer, Forced::Told);
        let lost = timeout(wait::PATIENCE / 2, guard.lost()).await;
        lost.expect("told, before the first renewal");
        let next = locks.lock(key).ttl(long()).wait(long()).acquire().await;
        let next = next.expect("after the grace");
        assert!(next.fencing_token() > guard.fencing_token());
        next.release().await.expect("held");
    }
}

#[tokio::test]
async fn an_order_whose_keys_are_all_in_their_old_place_is_done_while_the_slot_moves() {
    needs!(redis);
    let cluster = shared_cluster();
    let (locks, others) = (manager(cluster).await, manager(cluster).await);
    let operator = operator(cluster).await;
    let key = "{ordered-whole}";
    let name = format!("lockkit:{key}");
    // The mark, the shares and the queue are there besides the lock.
    once(&locks, key).await;
    let one = reader(&locks, key).acquire().await.expect("free");
    let other = reader(&others, key).acquire().await.expect("beside it");
    let writer = waits(cluster, &others, key, 1).await;
    let seen = holders(&operator, key, 2).await;
    let moving = Move::begin(cluster, &name);
    for holder in &seen {
        let answer = forced(&operator, holder).await.expect("an answer");
        assert_eq!(answer, Forced::Told);
    }
    for share in [&one, &other] {
        let lost = timeout(wait::PATIENCE / 2, share.lost()).await;
        lost.expect("told, before the first renewal");
    }
    moving.end();
    let next = its_turn(writer).await;
    assert!(next.fencing_token() > one.fencing_token());
    next.release().await.expect("held");
}
