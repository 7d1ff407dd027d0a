//! Tests databases whose transactions have another isolation level.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lock_core::Wait;
use lock_tests::{SqlServer, needs};
use tokio::task::JoinSet;

use super::{client, long, manager, once, table};

const MANAGERS: usize = 4;
const TASKS: usize = 4;
const ROUNDS: u64 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_are_the_same_at_each_isolation_level() {
    needs!(postgres);
    for level in ["repeatable read", "serializable"] {
        let server = SqlServer::postgres();
        server.sql(&format!(
            "ALTER DATABASE postgres SET default_transaction_isolation = '{level}'"
        ));
        let (entered, inside) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for _ in 0..MANAGERS {
            let locks = manager(server.url()).await;
            for _ in 0..TASKS {
                let (locks, entered) = (locks.clone(), Arc::clone(&entered));
                let inside = Arc::clone(&inside);
                tasks.spawn(async move {
                    for _ in 0..ROUNDS {
                        let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
                        let guard = request.acquire().await.expect("its turn");
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                        tokio::task::yield_now().await;
                        inside.fetch_sub(1, Ordering::SeqCst);
                        guard.release().await.expect("held");
                        entered.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        }
        tasks.join_all().await;
        let all = (MANAGERS * TASKS) as u64 * ROUNDS;
        assert_eq!(entered.load(Ordering::SeqCst), all, "{level}");
        table(&server).is_clean().await;
    }
}

/// At the level `serializable`, the server would note what each statement about a lock has read, and refuse some of them.
#[tokio::test]
async fn a_lock_is_no_serializable_transaction() {
    needs!(postgres);
    let server = SqlServer::postgres();
    server.sql("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'");
    let locks = manager(server.url()).await;
    // The server keeps its notes for as long as such a transaction is open.
    let client = client(&server).await;
    let open = "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM pg_class";
    client.batch_execute(open).await.expect("a transaction");
    once(&locks, "k").await;
    let noted = "SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock' \
                 AND relation IN ('lockkit.cell'::regclass, 'lockkit.cell_pkey'::regclass)";
    assert_eq!(server.value(noted), "0");
    client.batch_execute("COMMIT").await.expect("a commit");
}
