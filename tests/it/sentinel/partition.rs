//! Tests a master that lives on, cut off from the other servers.

use std::time::Duration;

use lock_core::ErrorKind;
use lock_tests::{Direction, Flow, Proxy, RedisServer, ReplicaSet, Sentinels, needs, wait};
use tokio::time::timeout;

use super::manager;
use super::mistakes::{answer, naming};
use crate::failover::TTL;

/// A master that is known by the address of a proxy.
///
/// So the test can cut it off from its replicas and its sentinels. A sentinel of its own, with
/// another service name, always names it as the master.
struct Split {
    _set: ReplicaSet,
    sentinels: Sentinels,
    proxy: Proxy,
    own: RedisServer,
}

impl Split {
    fn start(options: &lock_tests::RedisOptions) -> Split {
        let set = ReplicaSet::with(options, 2);
        let master = &set.servers()[0];
        let own = RedisServer::options()
            .sentinel_of("own", master.port(), 1, Sentinels::DOWN_AFTER, None)
            .start();
        let proxy = Proxy::to(master.address());
        for replica in set.replicas() {
            replica.cli(&["REPLICAOF", "127.0.0.1", &proxy.port().to_string()]);
        }
        wait::until("the replicas follow through the proxy", || {
            master.info("replication")["connected_slaves"] == "2"
                && set.replicas().iter().all(|replica| {
                    let info = replica.info("replication");
                    info["master_port"] == proxy.port().to_string()
                        && info["master_link_status"] == "up"
                })
        });
        let sentinels = Sentinels::behind(proxy.port(), 2, 3);
        Split {
            _set: set,
            sentinels,
            proxy,
            own,
        }
    }

    fn own_url(&self) -> String {
        format!("redis-sentinel://{}?service=own", self.own.address())
    }
}

#[tokio::test]
async fn a_master_that_wants_replicas_renews_nothing_once_it_is_cut_off_from_them() {
    needs!(redis);
    // The docs advise this setting. Without it the old master would renew for as long as the
    // partition lasts.
    let options = RedisServer::options()
        .config("min-replicas-to-write", "1")
        .config("min-replicas-max-lag", "1");
    let split = Split::start(&options);
    let inside = manager(&split.own_url()).await;
    let guard = inside.lock("k").ttl(TTL).acquire().await.expect("free");
    split.proxy.black_hole();
    let old = split.proxy.address();
    wait::eventually("another server is the master", async || {
        split.sentinels.master() != old
    })
    .await;
    // Another owner on the other side takes the lock over, when it has run out on the new master.
    let outside = manager(&split.sentinels.url()).await;
    guard.lost().await;
    wait::eventually("the lock is taken over", async || {
        match outside.lock("k").ttl(TTL).acquire().await {
            Ok(next) => {
                assert!(next.fencing_token() > guard.fencing_token());
                true
            }
            Err(error) => {
                // The new master may have no replica of its own yet.
                let expected = matches!(error.kind(), ErrorKind::Busy | ErrorKind::Unavailable);
                assert!(expected, "{error:?}");
                false
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_master_that_answers_is_left_when_the_sentinels_name_another() {
    needs!(redis);
    // The test plays the wrong side of a partition, where the old master itself shows no sign of it.
    let (old, new) = (RedisServer::start(), RedisServer::start());
    let sentinel = naming(old.port());
    let url = format!("redis-sentinel://{}?service=a", sentinel.address());
    let locks = manager(&url).await;
    let guard = locks.lock("held").ttl(TTL).acquire().await.expect("free");
    assert!(old.get("lockkit:held").is_some());
    sentinel.set(answer(new.port()));
    // The test changes nothing about the old master, so only the sentinel can tell the manager.
    let lost = timeout(wait::PATIENCE, guard.lost()).await;
    lost.expect("the manager leaves the old master");
    let next = locks.lock("k").acquire().await.expect("free");
    assert!(new.get("lockkit:k").is_some());
    assert_eq!(old.get("lockkit:k"), None);
    next.release().await.expect("held");
}

#[tokio::test]
async fn a_manager_does_not_connect_to_a_replaced_master_again_when_its_sentinel_is_slow() {
    needs!(redis);
    // The test plays a master that was frozen, was replaced, and continues.
    let (old, new) = (RedisServer::start(), RedisServer::start());
    let to_old = Proxy::to(old.address());
    let sentinel = naming(to_old.port());
    let far = Proxy::to(sentinel.address());
    for direction in [Direction::Requests, Direction::Replies] {
        far.set(direction, Flow::Delay(Duration::from_millis(50)));
    }
    let locks = manager(&format!("redis-sentinel://{}?service=a", far.address())).await;
    let guard = locks.lock("k").acquire().await.expect("free");
    assert!(old.get("lockkit:k").is_some());
    guard.release().await.expect("held");
    sentinel.set(answer(new.port()));
    to_old.cut();
    let guard = locks.lock("k").acquire().await.expect("free");
    assert!(new.get("lockkit:k").is_some());
    assert_eq!(old.get("lockkit:k"), None);
    guard.release().await.expect("held");
}
