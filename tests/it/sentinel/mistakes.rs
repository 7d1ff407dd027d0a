//! Tests mistakes in the URL or the servers: each has its kind of error, soon, and shows no
//! secret.

use lock_core::ErrorKind;
use lock_tests::{
    Answer, FakeServer, Port, RedisCluster, RedisServer, ReplicaSet, Sentinels, needs,
};

use super::{manager, refused};
use crate::conformance::{Watched, shared_watched};

#[tokio::test]
async fn a_service_that_the_sentinels_do_not_know_is_a_mistake() {
    needs!(redis);
    let watched = shared_watched();
    let url = watched.sentinels.url().replace("mymaster", "another");
    let error = refused(&url, "`service`").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}

#[tokio::test]
async fn sentinels_that_cannot_be_reached_are_an_outage() {
    let port = Port::free();
    let url = format!("redis-sentinel://:sesame@{}?service=a", port.address());
    let error = refused(&url, "can be reached").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_sentinel_that_never_answers_costs_nothing_if_another_answers() {
    needs!(redis);
    let watched = shared_watched();
    let silent = FakeServer::start(Answer::Silence);
    let url = format!("redis-sentinel://{},", silent.address());
    let url = watched.sentinels.url().replace("redis-sentinel://", &url);
    let locks = manager(&url).await;
    drop(locks.lock("mistakes").acquire().await.expect("free"));
}

#[tokio::test]
async fn a_server_that_is_no_sentinel_is_a_mistake() {
    needs!(redis);
    let server = RedisServer::start();
    let url = format!("redis-sentinel://{}?service=a", server.address());
    let error = refused(&url, "is no sentinel").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}

#[tokio::test]
async fn wrong_passwords_of_the_master_and_of_the_sentinels_are_told_apart() {
    needs!(redis);
    let set = ReplicaSet::with(&RedisServer::options().password("ofthemaster"), 1);
    let guarded = RedisServer::options().password("ofthesentinels");
    let sentinels = Sentinels::with(&guarded, &set, 1, Sentinels::DOWN_AFTER);
    let url = |master: &str, sentinel: &str| {
        let url = sentinels.url();
        let url = url.replace("redis-sentinel://", &format!("redis-sentinel://:{master}@"));
        format!("{url}&sentinel_password={sentinel}")
    };
    let right = manager(&url("ofthemaster", "ofthesentinels")).await;
    drop(right.lock("mistakes").acquire().await.expect("free"));
    assert!(!format!("{right:?}").contains("ofthe"));
    let error = refused(&url("sesame", "ofthesentinels"), "user or password").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    let error = refused(&url("ofthemaster", "sesame"), "sentinel_password").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}

/// Starts a sentinel that always names a master at this port.
pub(super) fn naming(port: u16) -> FakeServer {
    FakeServer::after_handshake(answer(port))
}

pub(super) fn answer(port: u16) -> Answer {
    let port = port.to_string();
    let address = format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len());
    Answer::Raw(address.into_bytes())
}

#[tokio::test]
async fn a_sentinel_that_names_a_replica_is_not_believed() {
    needs!(redis);
    let watched = shared_watched();
    let stale = naming(watched.set.replicas()[0].port());
    let url = format!("redis-sentinel://{}?service=mymaster", stale.address());
    let error = refused(&url, "is a replica").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // A correct sentinel is beside it.
    let url = format!("redis-sentinel://{},", stale.address());
    let url = watched.sentinels.url().replace("redis-sentinel://", &url);
    let locks = manager(&url).await;
    drop(locks.lock("mistakes").acquire().await.expect("free"));
}

#[tokio::test]
async fn a_sentinel_whose_master_is_a_node_of_a_cluster_is_a_mistake() {
    needs!(redis);
    let patient = std::time::Duration::from_secs(15);
    let cluster = RedisCluster::with(&RedisServer::options(), 1, patient);
    let node = &cluster.nodes()[0];
    let sentinel = naming(node.port());
    let url = format!("redis-sentinel://{}?service=mymaster", sentinel.address());
    let error = refused(&url, "redis-cluster://").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert_eq!(node.keys(), Vec::<String>::new());
}

#[tokio::test]
async fn a_sentinel_that_has_missed_a_failover_is_not_believed_even_if_its_master_acts_as_one() {
    needs!(redis);
    let watched = Watched::start();
    watched.fail_over().await;
    // This other server calls itself a master, as an old master does that comes back.
    let old = RedisServer::start();
    let stale = naming(old.port());
    let url = format!("redis-sentinel://{},", stale.address());
    let url = watched.sentinels.url().replace("redis-sentinel://", &url);
    for _ in 0..5 {
        let locks = manager(&url).await;
        let guard = locks.lock("mistakes").acquire().await.expect("free");
        assert_eq!(old.get("lockkit:mistakes"), None);
        guard.release().await.expect("held");
    }
}
