//! Tests a lock that is taken away while its handler runs.

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::client::VERSIONS;
use super::{Gate, Server, click, key, layer, nothing_is_left, server_on};

/// Returns a ttl with a renewal every 200 ms, by which the owner notices a loss.
fn ttl() -> Duration {
    Duration::from_millis(600)
}

async fn short_lived(redis: &RedisServer, gate: &Gate) -> Server {
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    Server::start(locks.clone(), layer(&locks).ttl(ttl()), gate).await
}

#[tokio::test]
async fn a_handler_whose_key_was_deleted_is_told_and_its_answer_is_sent() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let server = short_lived(&redis, &gate).await;
        let (order, ()) = tokio::join!(version.click(&server, "42"), async {
            let lock = gate.entered(1).await;
            assert!(lock.is_valid());
            redis.cli(&["DEL", &key("42")]);
            timeout(wait::PATIENCE, lock.lost()).await.expect("told");
            assert!(!lock.is_valid() && lock.remaining().is_zero());
            gate.let_through(1);
        });
        assert_eq!((order.status, &*order.body), (201, "an order"));
        nothing_is_left(&redis, &[&server]).await;
    }
}

#[tokio::test]
async fn the_end_of_a_handler_without_its_lock_leaves_the_next_owner_alone() {
    needs!(redis);
    let redis = RedisServer::start();
    let (slow, quick) = (Gate::closed(), Gate::closed());
    let first = short_lived(&redis, &slow).await;
    let second = server_on(&redis, &quick).await;
    let ((), ()) = tokio::join!(
        async {
            assert_eq!(click(&first, "42").await.status, 201);
            // The second handler still holds the lock, so no other one gets in.
            assert_eq!(click(&first, "42").await.status, 409);
            quick.let_through(1);
        },
        async {
            let old = slow.entered(1).await;
            redis.cli(&["DEL", &key("42")]);
            let ((), next) = tokio::join!(
                async {
                    let new = quick.entered(1).await;
                    assert!(new.fencing_token() > old.fencing_token());
                    timeout(wait::PATIENCE, old.lost()).await.expect("told");
                    slow.let_through(1);
                },
                click(&second, "42")
            );
            assert_eq!(next.status, 201);
        }
    );
    nothing_is_left(&redis, &[&first, &second]).await;
}

#[tokio::test]
async fn a_redis_that_loses_its_data_costs_the_handler_its_lock_and_not_its_answer() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let server = short_lived(&redis, &gate).await;
    let (order, ()) = tokio::join!(click(&server, "42"), async {
        let lock = gate.entered(1).await;
        redis.restart_empty();
        timeout(wait::PATIENCE, lock.lost()).await.expect("told");
        gate.let_through(1);
    });
    assert_eq!(order.status, 201);
    wait::eventually("the server serves the next click", async || {
        let answer = tokio::join!(click(&server, "42"), async { gate.let_through(1) }).0;
        assert!([201, 503].contains(&answer.status), "{answer:?}");
        answer.status == 201
    })
    .await;
    nothing_is_left(&redis, &[&server]).await;
}
