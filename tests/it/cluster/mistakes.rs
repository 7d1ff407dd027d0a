//! Tests mistakes in the URL or the nodes.
//!
//! Each has its kind of error, soon, and shows no secret.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager};
use lock_tests::{Port, RedisCluster, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{IMPATIENT, PATIENT, refused};
use crate::conformance::shared_cluster;

#[tokio::test]
async fn nodes_that_cannot_be_reached_are_an_outage() {
    let port = Port::free();
    let url = format!("redis-cluster://:sesame@{}", port.address());
    let error = refused(&url, "can be reached").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_server_of_its_own_is_no_cluster_and_a_node_is_no_server_of_its_own() {
    needs!(redis);
    let server = RedisServer::start();
    let error = refused(&format!("redis-cluster://{}", server.address()), "redis://").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    let node = &shared_cluster().nodes()[0];
    let url = format!("redis://{}", node.address());
    let error = refused(&url, "redis-cluster://").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}

#[tokio::test]
async fn a_node_that_has_all_slots_is_no_server_of_its_own_either() {
    needs!(redis);
    let cluster = RedisCluster::with(&RedisServer::options(), 1, PATIENT);
    let node = &cluster.nodes()[0];
    let address = node.address();
    for url in [format!("redis://{address}"), format!("redlock://{address}")] {
        let error = refused(&url, "redis-cluster://").await;
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{url}");
    }
    // A node has one database. Since Valkey 9 it can have more, and says that it lacks this one.
    let error = LockManager::connect(&format!("redis://{address}/1")).await;
    let error = error.expect_err("a node");
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    let said = error.to_string();
    assert!(
        said.contains("redis-cluster://") || said.contains("has no database"),
        "{said}"
    );
    assert_eq!(node.keys(), Vec::<String>::new());
    let locks = LockManager::connect(&cluster.url()).await;
    let locks = locks.expect("a manager");
    let guard = locks.lock("k").acquire().await.expect("free");
    guard.release().await.expect("held");

    // A missing right is found there too, for any slots of the node.
    let user = ["ACL", "SETUSER", "alice", "on", ">sesame"];
    let rights = ["+@all", "-zpopmin", "~*", "&*"];
    for node in cluster.nodes() {
        node.cli(&[&user[..], &rights].concat());
    }
    let url = cluster.url();
    let url = url.replace("redis-cluster://", "redis-cluster://alice:sesame@");
    let error = refused(&url, "ZPOPMIN").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}

#[tokio::test]
async fn one_node_of_the_url_is_enough() {
    needs!(redis);
    let cluster = shared_cluster();
    let closed = Port::free();
    let replica = cluster.nodes()[4].address();
    let url = format!("redis-cluster://{},{replica}", closed.address());
    let locks = LockManager::connect(&url).await.expect("a manager");
    for key in ["one:a", "one:b", "one:c", "one:d"] {
        let guard = locks.lock(key).acquire().await.expect("free");
        guard.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_cluster_that_has_lost_slots_is_an_outage_and_a_wrong_password_a_mistake() {
    needs!(redis);
    let options = RedisServer::options().password("ofthecluster");
    let cluster = RedisCluster::with(&options, 3, IMPATIENT);
    let url = |password: &str| {
        let hosts = cluster.url();
        hosts.replace("redis-cluster://", &format!("redis-cluster://:{password}@"))
    };
    let error = refused(&url("sesame"), "user or password").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    let locks = LockManager::connect(&url("ofthecluster"))
        .await
        .expect("a manager");
    assert!(!format!("{locks:?}").contains("ofthe"));
    drop(locks.lock("k").acquire().await.expect("free"));
    // The test kills a master and the replica that would take its place.
    cluster.nodes()[3].kill();
    cluster.nodes()[0].kill();
    wait::eventually("the other nodes report the cluster as down", async || {
        cluster.nodes()[1]
            .cli(&["CLUSTER", "INFO"])
            .contains("cluster_state:fail")
    })
    .await;
    for key in ["a", "b", "c"] {
        let error = timeout(wait::PATIENCE, locks.lock(key).acquire()).await;
        let error = error.expect("in bounded time").expect_err("no lock");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    let error = refused(&url("ofthecluster"), "").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // The locks come back when the master is back.
    cluster.nodes()[0].start_again();
    wait::eventually("locks can be taken again", async || {
        locks.lock("k").acquire().await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn nodes_that_redirect_to_each_other_are_an_outage() {
    needs!(redis);
    let cluster = RedisCluster::start(PATIENT);
    let builder = LockManager::builder(&cluster.url()).operation_timeout(Duration::from_secs(1));
    let locks = builder.connect().await.expect("a manager");
    let owner = cluster.master_of("lockkit:k");
    let nodes = cluster.nodes()[..3].iter();
    let mut others = nodes.filter(|node| node.port() != owner.port());
    let other = others.next().expect("another master");
    // The owner has given the slot away, and the other node knows nothing of it.
    let slot = cluster.slot("lockkit:k").to_string();
    let given = ["CLUSTER", "SETSLOT", &slot, "NODE", &other.id()];
    owner.cli(&given);
    let error = timeout(wait::PATIENCE, locks.lock("k").acquire()).await;
    let error = error.expect("in bounded time").expect_err("no lock");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    other.cli(&given);
    wait::eventually("locks can be taken again", async || {
        locks.lock("k").acquire().await.is_ok()
    })
    .await;
}
