//! Counts the statements that a server gets for a lock.

use std::time::Duration;

use lock_core::{Renew, Wait};
use lock_tests::{Direction, Flow, Proxy, SqlServer, needs, wait};

use super::{is_refused, its_turn, long, manager, once, table, taken};

/// Starts a server that writes down each statement.
fn writing_down() -> SqlServer {
    SqlServer::postgres_with(&["fsync=off", "log_statement=all"])
}

/// Counts the statements about locks so far. Those of the background and of the test are not prepared.
fn statements(server: &SqlServer) -> usize {
    let log = server.output();
    let lines = log.lines().filter(|line| line.contains("LOG:  execute s"));
    lines.count()
}

#[tokio::test]
async fn a_free_lock_is_one_statement_and_its_release_another() {
    needs!(postgres);
    let server = writing_down();
    let locks = manager(server.url()).await;
    // The connection exists, and its statements are prepared.
    for key in ["k", "l"] {
        once(&locks, key).await;
    }
    for key in ["k", "new"] {
        let before = so_far(&server).await;
        let guard = taken(&locks, key, long()).await;
        said(&server, before + 1).await;
        guard.release().await.expect("held");
        said(&server, before + 2).await;
    }
}

/// Counts the statements as soon as the log tells no more of them.
async fn so_far(server: &SqlServer) -> usize {
    loop {
        let count = statements(server);
        tokio::time::sleep(Duration::from_millis(100)).await;
        if statements(server) == count {
            return count;
        }
    }
}

/// Waits until the log has so many statements, and checks that no more follow.
async fn said(server: &SqlServer, count: usize) {
    wait::eventually("the server has written it down", async || {
        statements(server) >= count
    })
    .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(statements(server), count, "{}", server.output());
}

#[tokio::test]
async fn a_held_lock_is_refused_by_one_statement() {
    needs!(postgres);
    let server = writing_down();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    once(&other, "l").await;
    let _guard = taken(&locks, "k", long()).await;
    let before = so_far(&server).await;
    is_refused(&other, "k").await;
    said(&server, before + 1).await;
}

#[tokio::test]
async fn a_waiter_sends_nothing_while_it_waits() {
    needs!(postgres);
    let server = writing_down();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let request = locks.lock("k").ttl(long()).renew(Renew::Off);
    let guard = request.acquire().await.expect("free");
    let waiter = tokio::spawn(other.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    table(&server).queued(1).await;
    let before = so_far(&server).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(statements(&server), before);
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_grants_a_lock_before_it_is_asked_again() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let proxy = Proxy::to(server.address());
    let locks = manager(&server.url_through(&proxy)).await;
    once(&locks, "warm").await;
    proxy.set(Direction::Replies, Flow::Hold);
    let acquire = tokio::spawn(locks.lock("k").ttl(long()).acquire());
    let table = table(&server);
    wait::eventually("the server has granted the lock", async || {
        table.ends("k").is_some()
    })
    .await;
    assert!(!acquire.is_finished(), "no answer has come");
    proxy.pass();
    let guard = acquire.await.expect("no panic").expect("granted");
    guard.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_take_permits_of_one_key_do_not_outrun_one_another() {
    const TASKS: usize = 12;
    needs!(postgres);
    let server = writing_down();
    let proxy = Proxy::to(server.address());
    let locks = manager(&server.url_through(&proxy)).await;
    let permit = || locks.lock("k").ttl(long()).permits(100).acquire();
    permit().await.expect("free").release().await.expect("held");
    let before = so_far(&server).await;
    // All of them wait behind the first one, whose answer is on its way.
    proxy.set(Direction::Replies, Flow::Hold);
    let tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(permit())).collect();
    wait::eventually("the first one has its permit", async || {
        statements(&server) > before
    })
    .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    proxy.pass();
    let mut guards = Vec::new();
    for task in tasks {
        guards.push(task.await.expect("no panic").expect("room"));
    }
    // One statement for each, and a few more where a task is slow. Without an order, they are 78.
    let count = so_far(&server).await - before;
    println!("{count} statements of {TASKS} tasks");
    assert!(count < 2 * TASKS, "{count} statements");
}
