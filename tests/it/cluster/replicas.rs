//! Tests locks that replicas acknowledge, in a cluster.

use lock_core::{ErrorKind, LockManager};
use lock_tests::{needs, wait};

use crate::conformance::shared_cluster;
use crate::failover::TTL;

async fn manager(acks: u16) -> LockManager {
    let builder = LockManager::builder(&shared_cluster().url()).replica_acks(acks);
    // The replicas get a quarter of this time.
    let builder = builder.operation_timeout(std::time::Duration::from_secs(5));
    builder
        .namespace("acks:")
        .connect()
        .await
        .expect("a manager")
}

#[tokio::test]
async fn on_every_node_locks_are_acknowledged_and_renewed_by_its_replica() {
    needs!(redis_7);
    let locks = manager(1).await;
    let mut guards = Vec::new();
    for number in 0..20 {
        let key = format!("held:{number}");
        let guard = locks.lock(key.as_str()).ttl(TTL).acquire().await;
        guards.push((format!("acks:{key}"), guard.expect("free")));
    }
    let ends = |name: &String| shared_cluster().cli(name, &["PEXPIRETIME", name]);
    let before: Vec<_> = guards.iter().map(|(name, _)| ends(name)).collect();
    for ((name, _), before) in guards.iter().zip(before) {
        wait::eventually("the lock is renewed", async || ends(name) != before).await;
    }
    for (_, guard) in guards {
        assert!(guard.is_valid());
        guard.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_lock_that_too_few_replicas_of_its_node_have_is_released() {
    needs!(redis);
    // Each master has one replica.
    let locks = manager(2).await;
    for key in ["few:a", "few:b", "few:c"] {
        let error = locks.lock(key).acquire().await.expect_err("too few");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let name = format!("acks:{key}");
        wait::eventually("the lock is released", async || {
            shared_cluster().cli(&name, &["EXISTS", &name]) == "0"
        })
        .await;
    }
}
