//! Tests double clicks, on one server or on two.

use std::sync::Arc;
use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{RedisServer, needs, wait};

use super::client::VERSIONS;
use super::{Gate, Server, click, key, layer, nothing_is_left, server_on};
use crate::shop::{code, retry_after};

#[tokio::test]
async fn only_one_of_fifty_clicks_runs_on_one_server_or_two() {
    needs!(redis);
    let redis = RedisServer::start();
    for count in [1, 2] {
        one_of_fifty_runs(&redis, count).await;
    }
}

async fn one_of_fifty_runs(redis: &RedisServer, count: usize) {
    let gate = Gate::closed();
    let servers = [(); 2].map(|()| server_on(redis, &gate));
    let [first, second] = servers;
    let servers = Arc::new([first.await, second.await]);
    let clicks: Vec<_> = (0..50)
        .map(|number| {
            let servers = Arc::clone(&servers);
            let version = VERSIONS[number / 2 % 2];
            tokio::spawn(async move { version.click(&servers[number % count], "42").await })
        })
        .collect();
    // The click that runs stays inside until all others have been answered.
    let refused = || clicks.iter().filter(|click| click.is_finished()).count();
    wait::eventually("all others are answered", async || refused() == 49).await;
    gate.let_through(1);
    let mut statuses = Vec::new();
    for click in clicks {
        let answer = click.await.expect("an answer");
        if answer.status == 409 {
            assert_eq!(code(&answer), "lock_busy");
            assert_eq!(retry_after(&answer), 1, "a hint: {answer:?}");
        }
        statuses.push(answer.status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses[..2], [201, 409]);
    assert_eq!(gate.counts(), (1, 1));
    nothing_is_left(redis, &[&servers[0], &servers[1]]).await;
}

#[tokio::test]
async fn fifty_users_run_at_once_on_two_servers() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let servers = Arc::new([
        server_on(&redis, &gate).await,
        server_on(&redis, &gate).await,
    ]);
    let clicks: Vec<_> = (0..50)
        .map(|user| {
            let servers = Arc::clone(&servers);
            let version = VERSIONS[user / 2 % 2];
            let name = user.to_string();
            tokio::spawn(async move { version.click(&servers[user % 2], &name).await.status })
        })
        .collect();
    gate.entered(50).await;
    gate.let_through(50);
    for click in clicks {
        assert_eq!(click.await.expect("an answer"), 201);
    }
    nothing_is_left(&redis, &[&servers[0], &servers[1]]).await;
}

#[tokio::test]
async fn after_a_client_has_read_an_answer_the_lock_is_free_on_the_other_server() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::open();
    let servers = [
        server_on(&redis, &gate).await,
        server_on(&redis, &gate).await,
    ];
    for number in 0..40 {
        let version = VERSIONS[number / 2 % 2];
        let answer = version.click(&servers[number % 2], "42").await;
        assert_eq!(answer.status, 201, "click {number}: {answer:?}");
    }
}

#[tokio::test]
async fn after_the_answer_the_other_server_refuses_until_the_cooldown_is_over() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::open();
    let cooldown = Duration::from_millis(1_500);
    let mut servers = Vec::new();
    for _ in 0..2 {
        let locks = LockManager::connect(&redis.url()).await.expect("a manager");
        let layer = layer(&locks).cooldown(cooldown);
        servers.push(Server::start(locks, layer, &gate).await);
    }
    assert_eq!(click(&servers[0], "42").await.status, 201);
    let left = redis.time_to_live(&key("42")).expect("the key cools down");
    assert!(left <= cooldown, "{left:?}");
    for (server, version) in servers.iter().zip(VERSIONS) {
        let answer = version.click(server, "42").await;
        assert_eq!((answer.status, &*code(&answer)), (409, "lock_cooling_down"));
        assert!((1..=2).contains(&retry_after(&answer)));
    }
    wait::eventually("the cooldown is over", async || {
        click(&servers[1], "42").await.status == 201
    })
    .await;
    assert_eq!(gate.counts(), (2, 2));
}

#[tokio::test]
async fn a_get_passes_a_click_under_way_and_sends_redis_nothing() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let server = server_on(&redis, &gate).await;
    let (order, ()) = tokio::join!(click(&server, "42"), async {
        gate.entered(1).await;
        redis.reset_stats();
        for version in VERSIONS {
            let headers = [("x-user-id", "42")];
            let read = version.request(&server, "GET", "/orders", &headers, "");
            assert_eq!(read.await.status, 200);
        }
        let asked = redis.commandstats();
        assert!(
            !asked.contains_key("set") && !asked.contains_key("evalsha"),
            "{asked:?}"
        );
        gate.let_through(1);
    });
    assert_eq!(order.status, 201);
    nothing_is_left(&redis, &[&server]).await;
}
