//! Tests the findings about settings that endanger locks, each on a server that has the
//! setting.

use lock_core::{FindingKind, LockManager};
use lock_tests::{ReplicaSet, needs, wait};

use super::{audit, codes, well_kept};

/// Returns the only finding on a well-kept server with these settings changed.
async fn found(settings: &[[&str; 2]]) -> (FindingKind, String) {
    let server = well_kept().start();
    for [setting, value] in settings {
        server.cli(&["CONFIG", "SET", setting, value]);
    }
    let findings = audit(&server.url()).await;
    let [finding] = findings.as_slice() else {
        panic!("one finding: {findings:?}");
    };
    assert_eq!(
        finding.server(),
        Some(server.address().to_string().as_str())
    );
    (finding.kind(), finding.to_string())
}

#[tokio::test]
async fn nothing_is_found_on_a_server_that_is_well_kept() {
    needs!(redis);
    let server = well_kept().start();
    assert_eq!(audit(&server.url()).await, []);
}

#[tokio::test]
async fn nothing_is_found_on_the_embedded_store() {
    assert_eq!(audit("memory:").await, []);
}

#[tokio::test]
async fn a_policy_that_evicts_locks_is_found() {
    needs!(redis);
    for policy in ["volatile-lru", "volatile-ttl"] {
        let (kind, text) = found(&[["maxmemory-policy", policy]]).await;
        assert_eq!(kind, FindingKind::EvictsLocks);
        assert!(text.contains("set maxmemory-policy noeviction"), "{text}");
        assert!(text.contains(policy), "{text}");
    }
    let (kind, text) = found(&[["maxmemory-policy", "allkeys-lfu"]]).await;
    assert_eq!(kind, FindingKind::EvictsEverything);
    assert!(text.contains("high-water mark"), "{text}");
}

#[tokio::test]
async fn memory_that_is_nearly_used_up_is_found() {
    needs!(redis);
    let server = well_kept().start();
    let used: u64 = server.info("memory")["used_memory"].parse().expect("bytes");
    let limit = (used + used / 20).to_string();
    server.cli(&["CONFIG", "SET", "maxmemory", &limit]);
    assert_eq!(codes(&audit(&server.url()).await), ["nearly_full"]);
}

#[tokio::test]
async fn a_server_that_loses_data_is_found_and_its_loss_is_described() {
    needs!(redis);
    let log_off = ["appendonly", "no"];
    let (kind, text) = found(&[log_off, ["save", ""]]).await;
    assert_eq!(kind, FindingKind::NoPersistence);
    assert!(text.contains("set appendonly yes"), "{text}");
    let (kind, text) = found(&[log_off, ["save", "3600 1"]]).await;
    assert_eq!(kind, FindingKind::SnapshotsOnly);
    assert!(text.contains("since its last snapshot"), "{text}");
    let (kind, text) = found(&[["appendfsync", "no"]]).await;
    assert_eq!(kind, FindingKind::UnsyncedLog);
    assert!(text.contains("set appendfsync everysec"), "{text}");
}

#[tokio::test]
async fn a_server_that_refuses_every_write_is_found() {
    needs!(redis);
    let (kind, text) = found(&[["min-replicas-to-write", "1"]]).await;
    assert_eq!(kind, FindingKind::RefusesWrites);
    assert!(text.contains("min-replicas-to-write 0"), "{text}");
}

#[tokio::test]
async fn a_replica_and_too_few_replicas_are_found() {
    needs!(redis);
    let set = ReplicaSet::with(&well_kept(), 1);
    wait::until("the master knows its replica", || {
        set.master().info("replication")["slave0"].contains("state=online")
    });
    let replica = set.servers()[1].url();
    assert_eq!(codes(&audit(&replica).await), ["read_only"]);
    let asked_for = |replicas| {
        let builder = LockManager::builder(&set.master().url());
        builder
            .replica_acks(replicas)
            .connect_lazy()
            .expect("a manager")
    };
    assert_eq!(asked_for(1).audit().await.expect("an answer"), []);
    let findings = asked_for(2).audit().await.expect("an answer");
    assert_eq!(codes(&findings), ["too_few_replicas"]);
    let text = findings[0].to_string();
    assert!(text.contains("2 replicas and 1 are connected"), "{text}");
}
