//! Tests keys and namespaces that look alike, and other clients that delete their namespace.

use std::time::Duration;

use lock_core::{LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{all_is_answered, long, manager, once, served_both, taken, waits};
use crate::conformance::shared_cluster;

/// Lets two managers take two similar keys again and again.
///
/// Each release must be told to the waiters of its key, and to no others. A waiter that depends on its
/// timer fails, because all timers are longer than this test waits.
async fn all_are_told(managers: [LockManager; 2], alike: [&str; 2]) {
    let round = async |locks: &LockManager, key: &str| {
        for _ in 0..20 {
            let request = locks.lock(key).ttl(long()).wait(Wait::Forever);
            let guard = timeout(Duration::from_secs(5), request.acquire()).await;
            let guard = guard.expect("told of the release").expect("its turn");
            tokio::time::sleep(Duration::from_millis(2)).await;
            guard.release().await.expect("held");
        }
    };
    let [here, there] = &managers;
    let [one, other] = alike;
    tokio::join!(
        round(here, one),
        round(here, other),
        round(there, one),
        round(there, other),
    );
}

#[tokio::test]
async fn waiters_for_a_key_and_for_the_same_key_in_braces_are_each_told() {
    needs!(redis);
    let server = RedisServer::start();
    let url = server.url();
    all_are_told([manager(&url).await, manager(&url).await], ["a", "{a}"]).await;
}

#[tokio::test]
async fn in_a_cluster_waiters_for_a_key_and_for_its_full_name_in_braces_are_each_told() {
    needs!(redis);
    let url = shared_cluster().url();
    let key = "in-braces";
    let name = format!("{{lockkit:{key}}}");
    all_are_told([manager(&url).await, manager(&url).await], [key, &name]).await;
}

#[tokio::test]
async fn on_several_servers_waiters_for_a_key_and_for_the_same_key_in_braces_are_each_told() {
    needs!(redis);
    let servers: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
    let one = || async {
        let builder = LockManager::quorum(servers.iter().map(RedisServer::url));
        let builder = builder.operation_timeout(Duration::from_secs(5));
        builder.assume_fresh().connect().await.expect("a manager")
    };
    all_are_told([one().await, one().await], ["a", "{a}"]).await;
}

/// The script that `reset_all()` of python-redis-lock runs.
const RESET_ALL: &str = "
    local locks = redis.call('keys', 'lock:*')
    local signal
    for _, lock in pairs(locks) do
      signal = 'lock-signal:' .. string.sub(lock, 6)
      redis.call('del', signal)
      redis.call('lpush', signal, 1)
      redis.call('expire', signal, 1)
      redis.call('del', lock)
    end
    return #locks";

#[tokio::test]
async fn a_reset_by_python_redis_lock_leaves_locks_queues_marks_and_registers_alone() {
    needs!(redis);
    let (server, locks, other) = served_both().await;
    // One server is a quorum of its own here, so that it has registers.
    let several = LockManager::quorum([server.url()]).assume_fresh();
    let several = several.connect().await.expect("a manager");
    once(&locks, "marked").await;
    let held = taken(&locks, "k", long()).await;
    let voted = taken(&several, "v", long()).await;
    let waiter = waits(&server, &other, "k", 1).await;
    let queue = "lockkit:!q:{k}";
    all_is_answered(&other).await;
    let before = server.keys();
    for name in ["lockkit:k", "lockkit:v", "lockkit:!r", "lockkit:!f", queue] {
        assert!(
            before.contains(&name.to_owned()),
            "{name} is not in {before:?}"
        );
    }
    server.cli(&["SET", "lock:theirs", "1"]);
    assert_eq!(
        server.cli(&["EVAL", RESET_ALL, "0"]),
        "1",
        "only the keys of the other library"
    );
    let theirs = ["lock:theirs", "lock-signal:theirs"];
    let mut after = server.keys();
    after.retain(|key| !theirs.contains(&key.as_str()));
    assert_eq!(after, before);
    assert!(held.is_valid() && voted.is_valid());
    held.release().await.expect("held");
    voted.release().await.expect("held");
    let guard = timeout(wait::PATIENCE, waiter).await.expect("told");
    drop(guard.expect("no panic").expect("its turn"));
}
