//! Tests that a lock counts when enough replicas have it, and is released otherwise.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{Apart, builder, hasty, keys, long, manager, once, replica_set, waiting, waits};

#[tokio::test]
async fn a_granted_lock_is_on_as_many_replicas_as_required() {
    needs!(redis);
    let set = replica_set(2);
    let locks = manager(set.master(), 2).await;
    for round in 0..20 {
        let key = format!("k{round}");
        let guard = locks.lock(key.as_str()).ttl(long()).acquire().await;
        let guard = guard.expect("free");
        for replica in set.replicas() {
            assert!(replica.get(&format!("lockkit:{key}")).is_some());
        }
        guard.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_lock_that_a_stopped_replica_does_not_have_is_released_at_once() {
    needs!(redis);
    let set = replica_set(2);
    let locks = hasty(set.master(), 2).await;
    set.servers()[1].stop();
    for _ in 0..3 {
        let error = locks.lock("k").ttl(long()).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let said = error.to_string();
        assert!(said.contains("1 of the 2 replicas"), "{said}");
        assert_eq!(keys(set.master()), Vec::<String>::new());
    }
    set.servers()[1].cont();
    wait::eventually("the replica answers again", async || {
        locks.lock("k").acquire().await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_lock_that_a_replica_behind_a_partition_does_not_have_is_released_at_once() {
    needs!(redis);
    let apart = Apart::start();
    let locks = hasty(&apart.master, 1).await;
    apart.between.black_hole();
    let error = locks.lock("k").ttl(long()).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("0 of the 1 replicas"), "{error}");
    assert_eq!(keys(&apart.master), Vec::<String>::new());
    apart.between.pass();
    wait::eventually("the replica answers again", async || {
        locks.lock("k").acquire().await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn fewer_acknowledgements_than_replicas_are_enough_if_fewer_are_required() {
    needs!(redis);
    let set = replica_set(2);
    let locks = hasty(set.master(), 1).await;
    set.servers()[1].stop();
    let guard = locks
        .lock("k")
        .ttl(long())
        .acquire()
        .await
        .expect("one replica has the lock");
    assert!(set.servers()[2].get("lockkit:k").is_some());
    guard.release().await.expect("held");
}

#[tokio::test]
async fn without_replicas_no_lock_can_be_taken() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = hasty(&server, 1).await;
    let error = locks.lock("k").ttl(long()).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(keys(&server), Vec::<String>::new());
}

#[tokio::test]
async fn a_refusal_waits_for_no_replica() {
    needs!(redis);
    let set = replica_set(1);
    let (owner, locks) = (
        manager(set.master(), 1).await,
        manager(set.master(), 1).await,
    );
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let before = waits(set.master());
    let error = locks.lock("k").ttl(long()).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(waits(set.master()), before);
    guard.release().await.expect("held");
}

#[tokio::test]
async fn without_replica_acks_a_lock_waits_for_no_replica_and_needs_no_extra_connection() {
    needs!(redis);
    let set = replica_set(1);
    // The server may still count the connection of an earlier question of this test.
    let connections = || {
        let counted = || set.master().info("clients")["connected_clients"].parse::<u32>();
        (0..10).map(|_| counted().expect("a number")).min()
    };
    let none = connections();
    let plain = LockManager::connect(&set.master().url())
        .await
        .expect("a manager");
    plain
        .lock("k")
        .acquire()
        .await
        .expect("free")
        .release()
        .await
        .expect("held");
    let (before, waited) = (connections(), waits(set.master()));
    drop(plain);
    wait::eventually("the manager's connections are closed", async || {
        connections() == none
    })
    .await;
    let locks = manager(set.master(), 0).await;
    locks
        .lock("k")
        .acquire()
        .await
        .expect("free")
        .release()
        .await
        .expect("held");
    assert_eq!((connections(), waits(set.master())), (before, waited));
}

#[tokio::test]
async fn the_url_can_require_replicas_and_the_builder_overrides_it() {
    needs!(redis);
    let server = RedisServer::start();
    let url = format!("{}/0?replica_acks=1", server.url());
    let locks = LockManager::connect(&url).await.expect("a manager");
    let error = locks.lock("k").acquire().await.unwrap_err();
    assert!(error.to_string().contains("0 of the 1 replicas"), "{error}");
    let locks = builder(&url, 0).connect().await.expect("a manager");
    drop(locks.lock("k").acquire().await.expect("free"));
}

#[tokio::test]
async fn a_builder_on_a_client_of_the_caller_can_require_replicas() {
    needs!(redis);
    let server = RedisServer::start();
    let client = lock_core::redis1::Client::open(server.url()).expect("a URL");
    let builder = LockManager::builder_from_client(client).replica_acks(1);
    let locks = builder.connect().await.expect("a manager");
    let error = locks.lock("k").acquire().await.unwrap_err();
    assert!(error.to_string().contains("0 of the 1 replicas"), "{error}");
}

/// No server listens, so the error comes before any request.
#[test]
fn replicas_have_no_vote_among_several_servers() {
    let nodes = [
        "redis://127.0.0.1:1",
        "redis://127.0.0.1:2",
        "redis://127.0.0.1:3",
    ];
    let with = |place: usize| {
        let mut nodes = nodes.map(str::to_owned);
        nodes[place] += "?replica_acks=1";
        LockManager::quorum(nodes)
    };
    for builder in [
        LockManager::quorum(nodes).replica_acks(1),
        with(0),
        with(2),
        LockManager::quorum(["memory:a", "memory:b?replica_acks=1", "memory:c"]),
        LockManager::builder("redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3?replica_acks=1"),
        LockManager::builder("redlock://127.0.0.1:1,127.0.0.1:2").replica_acks(2),
    ] {
        let error = builder.connect_lazy().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("replica_acks"), "{error}");
    }
    let none = LockManager::quorum(nodes).replica_acks(0);
    none.connect_lazy().expect("zero replicas are allowed");
}

#[test]
fn the_embedded_store_has_no_replicas() {
    for builder in [
        LockManager::builder("memory:").replica_acks(1),
        LockManager::builder("memory:shop").replica_acks(2),
        LockManager::builder("memory:?replica_acks=1"),
    ] {
        let error = builder.connect_lazy().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("replica_acks"), "{error}");
    }
    let none = LockManager::builder("memory:").replica_acks(0);
    none.connect_lazy().expect("zero replicas are allowed");
}

#[tokio::test]
async fn a_cancelled_acquire_leaves_nothing_behind_while_replicas_are_away() {
    needs!(redis);
    let set = replica_set(1);
    let locks = hasty(set.master(), 1).await;
    drop(locks.lock("warm").acquire().await.expect("free"));
    set.servers()[1].stop();
    let acquiring = tokio::spawn(locks.lock("k").ttl(long()).acquire());
    wait::eventually("the master has the lock", async || {
        set.master().get("lockkit:k").is_some()
    })
    .await;
    acquiring.abort();
    assert!(acquiring.await.expect_err("aborted").is_cancelled());
    wait::eventually("the acquire is undone", async || {
        keys(set.master()).is_empty()
    })
    .await;
    set.servers()[1].cont();
}

#[tokio::test]
async fn a_late_release_of_a_refused_attempt_deletes_no_lock_that_was_granted_since() {
    needs!(redis);
    let set = replica_set(1);
    let proxy = Proxy::to(set.master().address());
    let locks = builder(&proxy.redis_url(), 1).operation_timeout(Duration::from_secs(2));
    let locks = locks.connect().await.expect("a manager");
    once(&locks, "first").await;
    let replica = &set.servers()[1];
    replica.stop();
    // The key is long, so that the number of bytes shows that the proxy keeps the release.
    let key = "k".repeat(1_000);
    let request = locks.lock(&*key).ttl(long()).wait(Wait::Forever);
    let waiter = tokio::spawn(request.acquire());
    wait::eventually("the lock waits for the replica", async || {
        waiting(set.master()) == 1
    })
    .await;
    // The replica is missing, so the lock is released. The network keeps that release.
    proxy.set(Direction::Requests, Flow::Hold);
    wait::eventually("the release is on its way", async || {
        proxy.held(Direction::Requests) > 1_000
    })
    .await;
    proxy.freeze();
    proxy.set(Direction::Requests, Flow::Pass);
    replica.cont();
    let guard = timeout(wait::PATIENCE, waiter)
        .await
        .expect("the replica is back");
    let guard = guard.expect("no panic").expect("granted");
    proxy.thaw();
    wait::eventually("the release arrives", async || {
        proxy.held(Direction::Requests) == 0
    })
    .await;
    for _ in 0..100 {
        assert!(
            set.master().get(&format!("lockkit:{key}")).is_some(),
            "the held lock was deleted"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    guard.release().await.expect("held");
}
