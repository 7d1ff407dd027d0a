//! Tests the audit of clocks that differ.
//!
//! Real servers are behind a proxy that sets their answers ahead.

use std::time::Duration;

use lock_core::{Finding, FindingKind, LockManager};
use lock_tests::{Direction, Flow, Proxy, RedisServer, ReplicaSet, Sentinels, needs, wait};

use super::{audit, well_kept};

const MINUTE: Flow = Flow::ClockAhead(Duration::from_secs(60));

/// Checks that all findings are about this server's clock and name the program to run.
#[track_caller]
fn only_about(proxy: &Proxy, findings: &[Finding], kinds: &[FindingKind]) {
    let found: Vec<_> = findings.iter().map(Finding::kind).collect();
    assert_eq!(found, kinds, "{findings:?}");
    let address = proxy.address().to_string();
    for finding in findings {
        assert_eq!(finding.server(), Some(address.as_str()));
        assert!(finding.to_string().contains("ntpd"), "{finding}");
    }
}

#[tokio::test]
async fn the_node_of_a_quorum_whose_clock_is_a_minute_ahead_is_found_and_named() {
    needs!(redis);
    let servers: Vec<_> = (0..3).map(|_| well_kept().start()).collect();
    let ahead = Proxy::to(servers[1].address());
    let urls = [servers[0].url(), ahead.redis_url(), servers[2].url()];
    let locks = LockManager::quorum(urls).assume_fresh();
    let locks = locks.connect().await.expect("a manager");
    wait::eventually(
        "the manager has met all three, and their settings are right",
        async || {
            let guard = locks.lock("met").acquire().await.expect("free");
            let all = guard.acks().granted() == 3;
            guard.release().await.expect("held");
            all && locks.audit().await.expect("an answer").is_empty()
        },
    )
    .await;
    ahead.set(Direction::Replies, MINUTE);
    let findings = locks.audit().await.expect("an answer");
    only_about(&ahead, &findings, &[FindingKind::ClockDiffers]);
}

#[tokio::test]
async fn a_replica_whose_clock_is_apart_from_its_masters_is_found_and_named() {
    needs!(redis);
    let set = ReplicaSet::with(&well_kept(), 1);
    let replica = &set.servers()[1];
    let ahead = Proxy::to(replica.address());
    let port = ahead.port().to_string();
    replica.cli(&["CONFIG", "SET", "replica-announce-port", &port]);
    replica.cli(&["CLIENT", "KILL", "TYPE", "master"]);
    wait::until("the master knows the replica behind the proxy", || {
        let info = set.master().info("replication");
        let replica = info.get("slave0").cloned().unwrap_or_default();
        replica.contains(&format!("port={port},state=online"))
    });
    let sentinels = Sentinels::with(&RedisServer::options(), &set, 1, Duration::from_secs(15));
    assert_eq!(audit(&sentinels.url()).await, []);
    ahead.set(Direction::Replies, MINUTE);
    let findings = audit(&sentinels.url()).await;
    let kinds = [FindingKind::ClockDiffers, FindingKind::ClocksDisagree];
    only_about(&ahead, &findings, &kinds);
}
