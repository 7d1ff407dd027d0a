//! Tests clients that leave, clients that wait, and a Redis without memory.

use std::time::Duration;

use lock_core::Wait;
use lock_tests::{RedisServer, needs, wait};
use lock_tower::Replay;

use super::{Payments, app, assert_first, assert_replay, pay, replaying, server_on};
use crate::layer::client::WAYS;
use crate::layer::{Gate, Server};
use crate::shop::code;

#[tokio::test]
async fn the_retry_of_a_client_that_left_gets_the_answer_that_it_lost() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let payments = Payments::default();
    let here = server_on(&redis, &gate, &payments).await;
    let there = server_on(&redis, &Gate::open(), &payments).await;
    for (index, way) in WAYS.into_iter().enumerate() {
        let key = format!("k{index}");
        let headers = [("x-user-id", "secret-user"), ("idempotency-key", &*key)];
        let client = way.begin(&here, "/payments", &headers, "{}", 2).await;
        gate.entered(index + 1).await;
        let rest = client.leave();
        gate.let_through(1);
        gate.ended(index + 1).await;
        let mut answer = pay(there.port(), &key, "{}").await;
        while answer.status == 409 && code(&answer) == "lock_busy" {
            answer = pay(there.port(), &key, "{}").await;
        }
        assert_replay(&answer, &format!("payment {}", index + 1));
        drop(rest);
    }
    assert_eq!(payments.count(), WAYS.len());
}

#[tokio::test]
async fn five_hundred_waiting_duplicates_on_eight_servers_get_the_answer_of_one_run() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let payments = Payments::default();
    let mut servers = Vec::new();
    for _ in 0..8 {
        let locks = crate::steps::manager(&redis.url()).await;
        let layer = replaying(&locks, Replay::default()).wait(Wait::Forever);
        servers.push(Server::serve(locks, app(layer, &gate, &payments)).await);
    }
    let ports: Vec<u16> = servers.iter().map(Server::port).collect();
    let duplicates: Vec<_> = (0..500)
        .map(|index| {
            let port = ports[index % ports.len()];
            tokio::spawn(async move { pay(port, "k1", "{}").await })
        })
        .collect();
    gate.entered(1).await;
    wait::eventually("seven servers wait in line", async || {
        redis.cli(&["ZCARD", "lockkit:!q:{pay:secret-user:k1}"]) == "7"
    })
    .await;
    redis.reset_stats();
    // A poll would be due after 75 ms.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let stats = redis.commandstats();
    assert_eq!(stats.get("evalsha"), None, "no waiter polls: {stats:?}");
    gate.let_through(1);
    let mut replays = 0;
    for duplicate in duplicates {
        let answer = duplicate.await.expect("no panic");
        assert_eq!((answer.status, &*answer.body), (201, "payment 1"));
        replays += usize::from(answer.headers.contains_key("idempotency-replayed"));
    }
    assert_eq!((payments.count(), replays), (1, 499));
    let mut keys = redis.keys();
    keys.retain(|key| key != "lockkit:!f");
    assert_eq!(keys, [super::name("k1")], "the queue is gone");
}

#[tokio::test]
async fn without_memory_for_the_record_duplicates_are_refused_for_one_more_ttl() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let locks = crate::steps::manager(&redis.url()).await;
    let ttl = Duration::from_secs(2);
    let layer = replaying(&locks, Replay::default()).ttl(ttl);
    let payments = Payments::default();
    let server = Server::serve(locks, app(layer, &gate, &payments)).await;
    gate.let_through(1);
    assert_first(&pay(server.port(), "warm", "").await, "payment 1");
    let (first, ()) = tokio::join!(pay(server.port(), "k1", ""), async {
        gate.entered(2).await;
        redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        gate.let_through(1);
    });
    assert_first(&first, "payment 2");
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let refused = pay(server.port(), "k1", "").await;
    assert_eq!((refused.status, &*code(&refused)), (409, "lock_busy"));
    gate.let_through(1);
    wait::eventually("the next request runs", async || {
        pay(server.port(), "k1", "").await.status == 201
    })
    .await;
    assert_eq!(payments.count(), 3);
}
