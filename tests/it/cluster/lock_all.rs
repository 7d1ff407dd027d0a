//! Tests locks of several keys in a cluster: in one slot, and on several nodes.

use lock_core::{ErrorKind, LockManager, LockRequest, Wait};
use lock_tests::{RedisCluster, needs, wait};

use super::{PATIENT, kind, long, manager, taken};
use crate::redis::asked;

fn all(locks: &LockManager, keys: &[&str]) -> LockRequest {
    locks.lock_all(keys.iter().copied()).ttl(long())
}

#[tokio::test]
async fn keys_of_one_slot_are_one_script_and_those_of_several_slots_one_attempt_each() {
    needs!(redis);
    // The test's own, because the nodes count the commands of all clients.
    let cluster = RedisCluster::start(PATIENT);
    let locks = manager(&cluster).await;
    let commands = async |keys: &[&str]| {
        for turn in 0..2 {
            let guard = all(&locks, keys).acquire().await.expect("free");
            if turn == 1 {
                let asked: Vec<_> = cluster.masters().into_iter().map(asked).collect();
                guard.release().await.expect("held");
                let sum = |name: &str| asked.iter().filter_map(|node| node.get(name)).sum::<u64>();
                return (sum("evalsha"), sum("exists"), sum("set"));
            }
            guard.release().await.expect("held");
            cluster
                .masters()
                .into_iter()
                .for_each(lock_tests::RedisServer::reset_stats);
        }
        unreachable!("the second turn returns");
    };
    assert_eq!(commands(&["{x}:a", "{x}:b"]).await, (1, 1, 2));
    let (scripts, together, _) = commands(&["a", "b", "c"]).await;
    assert_eq!(together, 0, "no script has keys of several slots");
    // The marks of the slots with the lower tokens are raised.
    assert_eq!(scripts, 2);
}

#[tokio::test]
async fn the_token_of_keys_on_two_nodes_counts_for_both_whatever_their_clocks_show() {
    needs!(redis);
    let cluster = RedisCluster::start(PATIENT);
    let (locks, other) = (manager(&cluster).await, manager(&cluster).await);
    for (lower, higher) in [("a", "b"), ("d", "c")] {
        assert_ne!(cluster.slot(&name(lower)), cluster.slot(&name(higher)));
        drop(taken(&other, higher, long()).await);
        wait::eventually("the mark is written", async || {
            mark(&cluster, higher).is_some()
        })
        .await;
        // The clock of that node was five seconds ahead, or is.
        let now = mark(&cluster, higher).expect("a mark").1;
        let ahead = (now + 5_000_000).to_string();
        let key = mark(&cluster, higher).expect("a mark").0;
        cluster.cli(&key, &["SET", &key, &ahead]);
        let guard = all(&locks, &[lower, higher]).wait(Wait::Forever).acquire();
        let guard = guard.await.expect("free");
        let fence = guard.fencing_token();
        assert!(u64::from(fence) > now + 5_000_000);
        // The owner is not asked, as if it had crashed, so no release raises the mark.
        cluster.cli(&name(lower), &["DEL", &name(lower)]);
        let next = taken(&other, lower, long()).await;
        assert!(
            next.fencing_token() > fence,
            "{} {fence}",
            next.fencing_token()
        );
        next.release().await.expect("held");
        let _ = guard.release().await;
    }
}

#[tokio::test]
async fn a_key_with_wrong_braces_among_several_is_invalid() {
    needs!(redis);
    let locks = manager(crate::conformance::shared_cluster()).await;
    let error = all(&locks, &["order:{42}", "{42}", "a}b"]).acquire().await;
    assert_eq!(kind(error), ErrorKind::Invalid);
    let error = all(&locks, &["{42}:b{", "{42}"]).acquire().await;
    error.expect("a tag decides").release().await.expect("held");
}

fn name(key: &str) -> String {
    format!("lockkit:{key}")
}

/// Returns the high-water mark of the key's slot, and its name.
fn mark(cluster: &RedisCluster, key: &str) -> Option<(String, u64)> {
    let slot = cluster.slot(&name(key));
    let keys = cluster
        .masters()
        .into_iter()
        .flat_map(lock_tests::RedisServer::keys);
    let marks = keys.filter(|key| key.starts_with("lockkit:!f:{"));
    let mark = marks.into_iter().find(|mark| cluster.slot(mark) == slot)?;
    let value = cluster.cli(&mark, &["GET", &mark]);
    Some((mark, value.parse().ok()?))
}
