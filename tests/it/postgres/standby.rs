//! Tests commits that wait for a standby which does not answer.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager};
use lock_tests::{SqlServer, needs, wait};

use super::{kind, long, manager, once, table, taken};

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

fn synchronous() -> [SqlServer; 2] {
    let primary = SqlServer::postgres();
    let standby = primary.standby(primary.address(), &["fsync=off"]);
    primary.waits_for_a_standby();
    [primary, standby]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_hangs_at_its_standby_is_unavailable_and_leaves_no_key() {
    needs!(postgres);
    let [primary, standby] = synchronous();
    let builder = LockManager::builder(primary.url());
    let builder = builder.operation_timeout(Duration::from_millis(500));
    let locks = builder.connect().await.expect("a manager");
    let held = taken(&locks, "held", long()).await;
    let table = table(&primary);
    standby.stop();
    for key in ["a", "b"] {
        let refused = locks.lock(key).ttl(long()).acquire().await;
        assert_eq!(kind(refused), ErrorKind::Unavailable);
    }
    assert!(held.is_valid());
    // Both undoes come while the commit still hangs: one on the next connection, and one for late copies of the acquire.
    tokio::time::sleep(Duration::from_secs(13)).await;
    standby.cont();
    wait::eventually("locks are granted again", async || {
        let acquire = locks.lock("c").ttl(long()).acquire().await;
        acquire.map(drop).is_ok()
    })
    .await;
    held.release().await.expect("held");
    table.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_its_primary_alone_has_is_no_grant() {
    needs!(postgres);
    let [primary, standby] = synchronous();
    let locks = manager(primary.url()).await;
    once(&locks, "warm").await;
    standby.stop();
    let acquire = tokio::spawn(locks.lock("k").ttl(long()).acquire());
    wait::eventually("the commit waits", async || primary.value(WAITING) != "0").await;
    // The server then answers with a warning: the transaction has committed locally, and might not be on the standby. The
    // undo waits for the standby too, and is cancelled in the same way.
    wait::eventually("the answer comes", async || {
        primary.sql(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
        );
        acquire.is_finished()
    })
    .await;
    assert_eq!(
        kind(acquire.await.expect("no panic")),
        ErrorKind::Unavailable
    );
    standby.cont();
    table(&primary).is_clean().await;
}
