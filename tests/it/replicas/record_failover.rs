//! Tests records that outlive their master, when every replica has acknowledged them.

use std::time::Duration;

use lock_core::middleware::RecordOutcome;
use lock_core::{Error, ErrorKind, LockManager};
use lock_tests::{RedisCluster, Sentinels, needs, wait};

use super::{long, replica_set, taken};

/// The keys of one round. In a cluster their slots belong to different masters.
const KEYS: usize = 30;

async fn manager(url: &str, replicas: u16) -> LockManager {
    let builder = LockManager::builder(url).replica_acks(replicas);
    let builder = builder.operation_timeout(Duration::from_secs(5));
    builder.connect().await.expect("a manager")
}

fn key(number: usize) -> String {
    format!("order:{number}")
}

/// Leaves a record in each key, and checks that the replicas have acknowledged it.
async fn leaves_records(locks: &LockManager) {
    for number in 0..KEYS {
        let guard = taken(locks, &key(number), long()).await;
        let answer = format!("answer {number}");
        guard.remember(answer, long()).expect("in bounds");
        let handle = guard.handle();
        guard.release().await.expect("held");
        assert_eq!(handle.record_outcome(), Some(RecordOutcome::Stored));
    }
}

/// Asks for each key until the servers serve again, and checks that the answer is the record and never a lock.
async fn records_are_there(locks: &LockManager) {
    for number in 0..KEYS {
        let mut refused: Option<Error> = None;
        wait::eventually("the servers answer", async || {
            let asked = locks.lock(key(number)).ttl(long()).acquire().await;
            let error = asked.expect_err("the record is in the key");
            let answers = error.kind() == ErrorKind::Busy;
            refused = Some(error);
            answers
        })
        .await;
        let refused = refused.expect("an answer");
        let answer = format!("answer {number}");
        assert_eq!(refused.record(), Some(answer.as_bytes()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_outlive_a_master_that_sentinels_replace() {
    needs!(redis);
    let set = replica_set(2);
    let sentinels = Sentinels::watch(&set, 3);
    let locks = manager(&sentinels.url(), 2).await;
    leaves_records(&locks).await;
    let first = sentinels.master();
    tokio::task::block_in_place(|| {
        set.at(first).kill();
        wait::until("another server is the master", || {
            sentinels.master() != first
        });
    });
    records_are_there(&locks).await;
    records_are_there(&manager(&sentinels.url(), 0).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_outlive_a_node_of_a_cluster() {
    needs!(redis);
    let cluster = RedisCluster::start(Duration::from_secs(1));
    let locks = manager(&cluster.url(), 1).await;
    leaves_records(&locks).await;
    let first = cluster.master_of(&format!("lockkit:{}", key(0)));
    let replica = cluster.replica_of(first);
    tokio::task::block_in_place(|| {
        first.kill();
        wait::until("the replica is the master", || replica.role() == "master");
    });
    records_are_there(&locks).await;
    records_are_there(&manager(&cluster.url(), 0).await).await;
}
