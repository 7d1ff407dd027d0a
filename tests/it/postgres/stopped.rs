//! Tests a server that is stopped (SIGSTOP): its connections stay open, and it answers nothing.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{SqlServer, needs, wait};
use tokio::time::timeout;

use super::{drains, its_turn, kind, long, manager, table, taken};

fn bounded() -> Duration {
    Duration::from_secs(5)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_server_is_unavailable_in_time_and_nothing_is_left_when_it_goes_on() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let locks = LockManager::connect(server.url()).await.expect("a manager");
    let held = taken(&locks, "held", long()).await;
    let released = taken(&locks, "released", long()).await;
    let table = table(&server);
    server.stop();
    let waits = [
        Wait::None,
        Wait::For(Duration::from_millis(50)),
        Wait::Forever,
    ];
    for wait in waits {
        let acquire = locks.lock("k").ttl(long()).wait(wait).acquire();
        let limit = match wait {
            // A waiter gives up when its questions have failed for the time of an outage.
            Wait::Forever => wait::PATIENCE,
            _ => bounded(),
        };
        let answer = timeout(limit, acquire).await;
        assert_eq!(kind(answer.expect("bounded")), ErrorKind::Unavailable);
    }
    let answer = timeout(bounded(), released.release()).await;
    assert_eq!(kind(answer.expect("bounded")), ErrorKind::Unavailable);
    assert!(held.is_valid(), "the lease still runs");
    server.cont();
    wait::eventually("the server serves again", async || {
        let acquire = locks.lock("k2").ttl(long()).acquire().await;
        acquire.map(drop).is_ok()
    })
    .await;
    held.release().await.expect("held");
    drains(&locks).await;
    table.is_clean().await;
}

#[tokio::test]
async fn a_connection_to_a_stopped_server_is_bounded() {
    needs!(postgres);
    let server = SqlServer::postgres();
    server.stop();
    let builder = LockManager::builder(server.url());
    let builder = builder.connect_timeout(Duration::from_millis(200));
    let answer = timeout(bounded(), builder.connect()).await;
    let error = answer
        .expect("bounded")
        .expect_err("the server does not answer");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.retry_after().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_survives_a_short_stop_of_the_server() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let guard = taken(&locks, "k", long()).await;
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    table(&server).queued(1).await;
    server.stop();
    let release = tokio::spawn(guard.release());
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.cont();
    release.await.expect("no panic").expect("held");
    its_turn(waiter).await.release().await.expect("held");
}
