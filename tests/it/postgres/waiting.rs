//! Tests many waiters, of many processes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{FindingKind, LockManager, Wait};
use lock_tests::{Direction, Flow, Proxy, SqlServer, needs};
use tokio::task::JoinSet;

use super::{its_turn, listening_through, long, manager, table, taken};

const WAITERS: usize = 100;
const MANAGERS: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_waiters_of_a_hundred_processes_are_served_in_the_order_of_their_arrival() {
    needs!(postgres);
    let server = SqlServer::postgres_with(&["fsync=off", "max_connections=400"]);
    let owner = manager(server.url()).await;
    let guard = taken(&owner, "k", long()).await;
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    let table = table(&server);
    for number in 0..WAITERS {
        let locks = manager(server.url()).await;
        let served = Arc::clone(&served);
        tasks.spawn(async move {
            let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
            let guard = request.acquire().await.expect("its turn");
            served.lock().expect("no panic").push(number);
            guard.release().await.expect("held");
        });
        table.queued(number + 1).await;
    }
    guard.release().await.expect("held");
    tasks.join_all().await;
    table.is_clean().await;
    let served = served.lock().expect("no panic");
    assert_eq!(*served, (0..WAITERS).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_managers_that_ask_at_once_all_get_the_lock() {
    needs!(postgres);
    let server = SqlServer::postgres_with(&["fsync=off", "max_connections=400"]);
    let mut managers = Vec::new();
    for _ in 0..MANAGERS {
        managers.push(manager(server.url()).await);
    }
    let mut tasks = JoinSet::new();
    for locks in managers {
        tasks.spawn(async move {
            for _ in 0..3 {
                let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
                let guard = request.acquire().await.expect("its turn");
                guard.release().await.expect("held");
            }
        });
    }
    tasks.join_all().await;
    table(&server).is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_its_server_does_not_admit_leaves_waiters_to_ask_again() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let proxy = Proxy::to(server.address());
    proxy.set(Direction::Replies, Flow::Hold);
    let locks = LockManager::builder(&listening_through(&server, &proxy))
        .connect_timeout(Duration::from_secs(6));
    let locks = locks.connect().await.expect("a manager");
    let other = manager(server.url()).await;
    let guard = taken(&other, "k", long()).await;
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_on_another_database_leaves_waiters_to_ask_again() {
    needs!(postgres);
    let server = SqlServer::postgres();
    server.sql("CREATE DATABASE another");
    let way = server.url().replace("/postgres", "/another");
    assert_ne!(way, server.url());
    let url = format!("{}?listen={way}", server.url());
    let (locks, other) = (manager(&url).await, manager(server.url()).await);
    let guard = taken(&other, "k", long()).await;
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
    let findings = locks.audit().await.expect("an audit");
    let mut kinds = findings.iter().map(lock_core::Finding::kind);
    assert!(kinds.any(|kind| kind == FindingKind::MayNotSubscribe));
}
