//! Tests how many commands shares cost, counted by the server itself.

use lock_core::Wait;
use lock_tests::needs;

use super::super::counts;
use super::{asked, entered, permit, proxied, reader};
use crate::steps::{its_turn, long, queued, served_both};

#[tokio::test]
async fn a_lone_reader_or_permit_costs_what_a_plain_lock_costs() {
    needs!(redis_7);
    let (server, _proxy, locks) = proxied(std::time::Duration::from_secs(5)).await;
    // The first release of a share loads its script.
    entered(reader(&locks)).await.release().await.expect("held");
    let mut costs = Vec::new();
    for request in [
        locks.lock("k").ttl(long()),
        reader(&locks),
        permit(&locks, 5),
        reader(&locks).wait(Wait::Forever),
    ] {
        server.reset_stats();
        let guard = request.acquire().await.expect("free");
        let acquire = asked(&server);
        assert_eq!(acquire, counts(&[("set", 1), ("get", 1), ("time", 1)]));
        server.reset_stats();
        guard.release().await.expect("held");
        let release = asked(&server);
        assert_eq!(release.get("evalsha"), Some(&1));
        costs.push(release.values().sum::<u64>());
    }
    assert!(costs.iter().all(|cost| *cost == costs[0]), "{costs:?}");
}

#[tokio::test]
async fn beside_others_a_reader_is_one_request_each_way() {
    needs!(redis_7);
    let (server, _proxy, locks) = proxied(std::time::Duration::from_secs(5)).await;
    let others = (entered(reader(&locks)).await, entered(reader(&locks)).await);
    // Loads the script.
    entered(reader(&locks)).await.release().await.expect("held");
    for request in [reader(&locks), reader(&locks).wait(Wait::Forever)] {
        server.reset_stats();
        let guard = request.acquire().await.expect("room");
        let acquire = asked(&server);
        assert_eq!(acquire.get("evalsha"), Some(&1));
        server.reset_stats();
        guard.release().await.expect("held");
        let release = asked(&server);
        assert_eq!(release.get("evalsha"), Some(&1));
        let all = |counts: &std::collections::BTreeMap<String, u64>| counts.values().sum::<u64>();
        assert!(
            all(&acquire) <= 13 && all(&release) <= 13,
            "{acquire:?} {release:?}"
        );
    }
    drop(others);
}

#[tokio::test]
async fn a_process_that_has_all_permits_refuses_the_next_caller_without_a_command() {
    needs!(redis);
    let (server, locks, others) = served_both().await;
    let first = entered(permit(&locks, 2)).await;
    let second = entered(permit(&locks, 2)).await;
    server.reset_stats();
    for limit in [1, 2] {
        let refused = permit(&locks, limit).try_acquire().await;
        assert!(refused.expect("an answer").is_none());
        let error = permit(&locks, limit).acquire().await.expect_err("full");
        assert!(error.is_full() && error.retry_after().is_some());
    }
    assert_eq!(asked(&server), counts(&[]));
    // Another process has to ask, and so has a caller that waits, for its place in the queue.
    let refused = permit(&others, 2).try_acquire().await;
    assert!(refused.expect("an answer").is_none());
    assert!(!asked(&server).is_empty());
    let waiter = tokio::spawn(permit(&locks, 2).wait(Wait::Forever).acquire());
    queued(&server, "k", 1).await;
    first.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
    let third = entered(permit(&locks, 2)).await;
    drop((second, third));
}
