//! Tests several servers that speak TLS to their clients and to each other.

use lock_core::{ErrorKind, LockManager};
use lock_tests::{Authority, RedisCluster, RedisServer, ReplicaSet, Sentinels, needs};

use super::{connected, is_of_use, refused, tls, trusting};

/// The timeout of servers in a test in which none fails.
const PATIENT: std::time::Duration = std::time::Duration::from_secs(15);

#[tokio::test]
async fn a_manager_speaks_tls_to_sentinels_and_their_master() {
    needs!(redis_with_tls);
    let authority = Authority::new();
    let options = RedisServer::options().tls(&tls(&authority));
    let set = ReplicaSet::with(&options, 1);
    let sentinels = Sentinels::with(&options, &set, 1, PATIENT);
    let url = sentinels.url();
    assert!(url.starts_with("rediss-sentinel://"), "{url}");
    let builder = || LockManager::builder(&url).tls_certificates(trusting(&authority));
    let (locks, other) = (connected(builder()).await, connected(builder()).await);
    is_of_use(&locks, &other, "k").await;
    let error = refused(LockManager::builder(&url), "SSL_CERT_FILE").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}

#[tokio::test]
async fn a_manager_speaks_tls_to_all_nodes_of_a_cluster() {
    needs!(redis_with_tls);
    let authority = Authority::new();
    let options = RedisServer::options().tls(&tls(&authority));
    let cluster = RedisCluster::with(&options, 3, PATIENT);
    let url = cluster.url();
    assert!(url.starts_with("rediss-cluster://"), "{url}");
    let builder = || LockManager::builder(&url).tls_certificates(trusting(&authority));
    let (locks, other) = (connected(builder()).await, connected(builder()).await);
    let mut masters = std::collections::BTreeSet::new();
    for key in ["a", "b", "c", "d"] {
        masters.insert(cluster.master_of(&format!("lockkit:{key}")).port());
        is_of_use(&locks, &other, key).await;
    }
    assert!(masters.len() > 1, "the keys are on several nodes");
    let error = refused(LockManager::builder(&url), "SSL_CERT_FILE").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}

#[tokio::test]
async fn a_lock_over_several_servers_works_over_tls() {
    needs!(redis_with_tls);
    let authority = Authority::new();
    let tls = tls(&authority);
    let servers: Vec<_> = (0..3)
        .map(|_| RedisServer::options().tls(&tls).start())
        .collect();
    let hosts = servers.iter().map(RedisServer::tls_url);
    let hosts: Vec<_> = hosts.map(|url| url.replace("rediss://", "")).collect();
    let url = format!("redlocks://{}?assume_fresh=true", hosts.join(","));
    let builder = || LockManager::builder(&url).tls_certificates(trusting(&authority));
    let (locks, other) = (connected(builder()).await, connected(builder()).await);
    is_of_use(&locks, &other, "k").await;
    let error = refused(LockManager::builder(&url), "SSL_CERT_FILE").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}
