//! Tests requests of several tasks that go to the server in one statement.

use lock_core::{ErrorKind, LockManager};
use lock_tests::{SqlServer, needs};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::{long, manager, once, table, taken};

const TASKS: usize = 64;

/// Takes and frees a key for each task, all at once. Returns how many of them were refused.
async fn all_at_once(locks: &LockManager) -> usize {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let request = locks.lock(format!("k{task}")).ttl(long());
        tasks.spawn(async move {
            match request.acquire().await {
                Ok(guard) => guard.release().await.map_err(|error| error.kind()),
                Err(error) => Err(error.kind()),
            }
        });
    }
    let ended = tasks.join_all().await.into_iter();
    let refused = ended.filter_map(Result::err);
    refused
        .inspect(|kind| assert_eq!(*kind, ErrorKind::Busy))
        .count()
}

/// The row of one key is locked by a transaction for the whole time, and another key is held by another process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_refused_does_not_refuse_those_sent_with_it() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let held = taken(&other, "k7", long()).await;
    once(&other, "k9").await;
    let (mut client, connection) = tokio_postgres::connect(server.url(), NoTls)
        .await
        .expect("a server");
    tokio::spawn(connection);
    let tx = client.transaction().await.expect("a transaction");
    let row = super::table::row(super::DEFAULT, "k9");
    let locking = format!("SELECT 1 FROM lockkit.cell WHERE key = {row} FOR UPDATE");
    tx.execute(locking.as_str(), &[]).await.expect("an answer");
    assert_eq!(all_at_once(&locks).await, 2);
    tx.rollback().await.expect("an answer");
    held.release().await.expect("held");
    assert_eq!(all_at_once(&locks).await, 0);
    table(&server).is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_go_on_while_a_snapshot_is_open() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let locks = manager(server.url()).await;
    let (client, connection) = tokio_postgres::connect(server.url(), NoTls)
        .await
        .expect("a server");
    tokio::spawn(connection);
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM lockkit.cell";
    client.batch_execute(snapshot).await.expect("a snapshot");
    for _ in 0..20 {
        assert_eq!(all_at_once(&locks).await, 0);
    }
    server.sql("VACUUM lockkit.cell");
    // The server cannot remove a version of a row that the snapshot may see.
    let fence = taken(&locks, "k0", long()).await;
    assert_eq!(
        server.value("SELECT count(*) FROM lockkit.cell WHERE fence IS NOT NULL"),
        "1"
    );
    fence.release().await.expect("held");
    client.batch_execute("COMMIT").await.expect("an answer");
    table(&server).is_clean().await;
}
