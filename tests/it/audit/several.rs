//! Tests the audit of several servers: each is audited and named.

use std::time::Duration;

use lock_core::{Finding, LockManager};
use lock_tests::{RedisCluster, RedisServer, ReplicaSet, Sentinels, needs, wait};

use super::{audit, codes, well_kept};

/// Checks that there is one finding and that it is about this server.
#[track_caller]
fn only_about(server: &RedisServer, findings: &[Finding]) {
    let [finding] = findings else {
        panic!("one finding: {findings:?}");
    };
    let address = server.address().to_string();
    assert_eq!(finding.server(), Some(address.as_str()));
}

/// Makes the server lose all its data at a restart.
fn neglect(server: &RedisServer) {
    server.cli(&["CONFIG", "SET", "appendonly", "no"]);
    server.cli(&["CONFIG", "SET", "save", ""]);
}

#[tokio::test]
async fn a_replica_that_may_be_promoted_is_audited_like_its_master() {
    needs!(redis);
    let set = ReplicaSet::with(&well_kept(), 2);
    let sentinels = Sentinels::watch(&set, 3);
    wait::until("the master knows its replicas", || {
        let info = set.master().info("replication");
        ["slave0", "slave1"]
            .iter()
            .all(|it| info.get(*it).is_some_and(|it| it.contains("state=online")))
    });
    assert_eq!(audit(&sentinels.url()).await, []);
    neglect(&set.servers()[2]);
    let findings = audit(&sentinels.url()).await;
    assert_eq!(codes(&findings), ["no_persistence"]);
    only_about(&set.servers()[2], &findings);
    // A server that does not answer has no findings and delays no other.
    set.servers()[2].stop();
    assert_eq!(audit(&sentinels.url()).await, []);
    set.servers()[2].cont();
}

#[tokio::test]
async fn every_node_of_a_cluster_is_audited() {
    needs!(redis);
    let cluster = RedisCluster::start(Duration::from_secs(15));
    for node in cluster.nodes() {
        node.cli(&["CONFIG", "SET", "appendonly", "yes"]);
    }
    let locks = LockManager::connect(&cluster.url())
        .await
        .expect("a manager");
    wait::eventually("the audit finds nothing on any node", async || {
        locks.audit().await.expect("an answer").is_empty()
    })
    .await;
    let last = cluster.nodes().last().expect("a node");
    neglect(last);
    // A node that is too busy to answer has no findings.
    let mut findings = Vec::new();
    wait::eventually("the last node has answered the audit", async || {
        findings = locks.audit().await.expect("an answer");
        !findings.is_empty()
    })
    .await;
    assert_eq!(codes(&findings), ["no_persistence"]);
    only_about(last, &findings);
}
