//! Tests that findings are logged once, and that the audit delays no caller.

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};

use super::{log, well_kept};
use crate::steps::drains;

#[tokio::test]
async fn findings_are_logged_once_for_each_manager_and_not_again_after_a_reconnect() {
    needs!(redis);
    log::listen();
    let server = RedisServer::start();
    let address = server.address().to_string();
    let locks = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    let logged = log::of(&address);
    let [warning] = logged.as_slice() else {
        panic!("one warning when the manager is connected: {logged:?}");
    };
    assert_eq!(warning.code, "no_persistence");
    assert!(
        warning.message.contains("set appendonly yes"),
        "{warning:?}"
    );
    server.restart();
    wait::eventually("the manager listens again", async || {
        !server
            .cli(&["PUBSUB", "CHANNELS", "lockkit:!m:*"])
            .is_empty()
    })
    .await;
    drop(locks.lock("k").acquire().await.expect("free"));
    // The keeper sends this after any questions of a second audit.
    drains(&locks).await;
    // Valkey 9 asks itself when it starts.
    let questions = |server: &RedisServer| server.commandstats().get("config|get").copied();
    assert_eq!(questions(&server), questions(&RedisServer::start()));
    // Another manager logs the finding too.
    let lazy = LockManager::connect_lazy(&server.url()).expect("a manager");
    drop(lazy.lock("k2").acquire().await.expect("free"));
    wait::eventually("the lazy manager logs the finding too", async || {
        log::of(&address).len() == 2
    })
    .await;
    lazy.audit().await.expect("an answer");
    assert_eq!(
        log::of(&address).len(),
        2,
        "an audit that the caller asks for answers and logs nothing"
    );
}

#[tokio::test]
async fn nothing_is_logged_about_a_server_that_is_well_kept() {
    needs!(redis);
    log::listen();
    let server = well_kept().start();
    let locks = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    drop(locks.lock("k").acquire().await.expect("free"));
    assert!(log::of(&server.address().to_string()).is_empty());
}

#[tokio::test]
async fn a_manager_connects_to_a_server_that_does_not_answer_the_audit() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let url = proxy.redis_url();
    drop(LockManager::connect(&url).await.expect("a manager"));
    // The proxy passes the same answers again, except for the last one.
    let all = proxy.bytes(Direction::Replies);
    proxy.set(Direction::Replies, Flow::HoldAfter(all - 200));
    let locks = LockManager::connect(&url)
        .await
        .expect("the audit is no reason to fail");
    let audited = locks.audit();
    proxy.set(Direction::Replies, Flow::Pass);
    audited.await.expect("an answer");
    let guard = locks.lock("k").ttl(Duration::from_secs(60)).acquire().await;
    guard.expect("free").release().await.expect("held");
}
