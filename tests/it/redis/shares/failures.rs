//! Tests shares on a server that fails: lost answers, a full memory, wrong types, a queue that cannot be served.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{Proxy, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{LOCK, QUEUE, SHARES, entered, keys, kind, permit, reader};
use crate::steps::{its_turn, served, served_both, waits};

/// The permits that are taken while connections are cut. `LOCK_TESTS_PERMITS` sets another number.
fn rounds() -> usize {
    let number = std::env::var("LOCK_TESTS_PERMITS");
    number.map_or(600, |number| number.parse().expect("a number"))
}

#[tokio::test]
async fn permits_are_never_too_many_and_all_come_back_though_answers_are_lost() {
    const PERMITS: u32 = 4;
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let ttl = Duration::from_secs(2);
    let locks = LockManager::builder(&proxy.redis_url())
        .operation_timeout(Duration::from_secs(5))
        .connect()
        .await
        .expect("a manager");
    let next = Arc::new(AtomicUsize::new(0));
    let inside = Arc::new(AtomicUsize::new(0));
    let proxy = Arc::new(proxy);
    let tasks: Vec<_> = (0..12)
        .map(|_| {
            let (locks, proxy) = (locks.clone(), Arc::clone(&proxy));
            let (next, inside) = (Arc::clone(&next), Arc::clone(&inside));
            tokio::spawn(async move {
                let mut granted = 0;
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= rounds() {
                        return granted;
                    }
                    if number % 10 == 9 {
                        proxy.cut();
                    }
                    let request = locks.lock("k").ttl(ttl).permits(PERMITS);
                    let Ok(guard) = request.wait(Wait::Forever).acquire().await else {
                        continue;
                    };
                    let beside = inside.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    if guard.is_valid() {
                        assert!(beside < PERMITS as usize, "{beside} were inside");
                        granted += 1;
                    }
                    inside.fetch_sub(1, Ordering::SeqCst);
                    // An answer that is lost is no failure of the work.
                    let _ = guard.release().await;
                }
            })
        })
        .collect();
    let mut granted = 0;
    for task in tasks {
        granted += task.await.expect("no panic");
    }
    assert!(granted > rounds() / 2, "{granted} of {}", rounds());
    wait::eventually("all permits come back", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn a_full_server_ends_shares_and_serves_those_that_wait() {
    needs!(redis);
    let (server, locks, others) = served_both().await;
    let one = entered(reader(&locks)).await;
    let other = entered(reader(&others)).await;
    let writer = waits(&server, &locks, "k", 1).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(
        kind(entered_elsewhere(&locks).await),
        ErrorKind::Unavailable
    );
    for share in [one, other] {
        share.release().await.expect("a release needs no memory");
    }
    let guard = its_turn(writer).await;
    guard.release().await.expect("held");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    entered(reader(&locks)).await.release().await.expect("held");
    assert_eq!(keys(&server), Vec::<String>::new());
}

async fn entered_elsewhere(locks: &LockManager) -> Result<(), lock_core::Error> {
    locks.lock("elsewhere").permits(3).acquire().await.map(drop)
}

#[tokio::test]
async fn a_full_server_lets_no_share_in_beside_others_and_keeps_those_inside() {
    needs!(redis);
    let (server, locks) = served().await;
    let ttl = Duration::from_secs(1);
    let one = entered(reader(&locks).ttl(ttl)).await;
    let other = entered(reader(&locks).ttl(ttl)).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = reader(&locks).acquire().await;
    assert_eq!(kind(refused), ErrorKind::Unavailable);
    let lost = timeout(ttl * 2, async {
        tokio::select! {
            () = one.lost() => {}
            () = other.lost() => {}
        }
    });
    assert!(lost.await.is_err(), "both are renewed");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    for share in [one, other] {
        share.release().await.expect("held");
    }
    assert_eq!(keys(&server), Vec::<String>::new());
}

#[tokio::test]
async fn a_set_of_shares_that_is_no_set_is_misconfigured_and_left_alone() {
    needs!(redis);
    let (server, locks) = served().await;
    server.cli(&["SET", LOCK, "shared/lockkit", "PX", "60000"]);
    server.cli(&["SET", SHARES, "a text"]);
    let refused = reader(&locks).acquire().await;
    assert_eq!(kind(refused), ErrorKind::Misconfigured);
    assert_eq!(server.get(SHARES).as_deref(), Some("a text"));
    assert_eq!(server.get(LOCK).as_deref(), Some("shared/lockkit"));
    // A queue of another type keeps no share from entering a free key.
    server.cli(&["DEL", LOCK, SHARES]);
    server.cli(&["SET", QUEUE, "a text"]);
    let guard = entered(permit(&locks, 5)).await;
    guard.release().await.expect("held");
    assert_eq!(server.get(QUEUE).as_deref(), Some("a text"));
}

#[tokio::test]
async fn the_set_of_shares_takes_as_many_bytes_as_the_guide_says() {
    needs!(redis);
    let server = RedisServer::start();
    let add = "for number = 1, ARGV[1] do redis.call('ZADD', KEYS[1], 1780000000000 + number, \
        string.format('0123456789abcdef/%032xffffffff', number)) end \
        return redis.call('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', '0')";
    for (owners, least, most) in [(128, 60, 90), (10_000, 120, 200)] {
        let bytes = server.cli(&["EVAL", add, "1", SHARES, &owners.to_string()]);
        let each = bytes.parse::<u64>().expect("bytes") / owners;
        assert!(
            (least..most).contains(&each),
            "{each} bytes for each of {owners}"
        );
    }
}

#[tokio::test]
async fn a_strangers_value_that_looks_like_shares_is_left_alone() {
    needs!(redis);
    let (server, locks) = served().await;
    for value in ["shared", "shared/lockkit"] {
        server.cli(&["SET", LOCK, value, "NX"]);
        for request in [reader(&locks), permit(&locks, 5)] {
            let refused = request.try_acquire().await.expect("an answer");
            assert!(refused.is_none(), "{value} is a stranger's");
        }
        assert_eq!(server.get(LOCK).as_deref(), Some(value));
        server.cli(&["DEL", LOCK]);
    }
    entered(reader(&locks)).await.release().await.expect("held");
    // A waiter polls behind a stranger, who notifies no client.
    server.cli(&["SET", LOCK, "shared", "NX", "PX", "60000"]);
    let waiter = tokio::spawn(reader(&locks).wait(Wait::Forever).acquire());
    wait::eventually("the waiter is queued", async || keys(&server).len() == 2).await;
    server.cli(&["DEL", LOCK]);
    drop(its_turn(waiter).await);
}

#[tokio::test]
async fn a_key_whose_set_is_gone_admits_no_share_before_its_end() {
    needs!(redis);
    let (server, locks, others) = served_both().await;
    let inside = [
        entered(permit(&locks, 2)).await,
        entered(permit(&locks, 2)).await,
    ];
    server.cli(&["DEL", SHARES]);
    assert!(
        inside.iter().all(|guard| guard.is_valid()),
        "no renewal is due"
    );
    for request in [permit(&others, 2), reader(&others)] {
        let refused = request.try_acquire().await.expect("an answer");
        assert!(refused.is_none(), "two owners count on their permits");
    }
    server.cli(&["PEXPIRE", LOCK, "1"]);
    let next = permit(&others, 2).wait(Wait::Forever).acquire();
    its_turn(tokio::spawn(next))
        .await
        .release()
        .await
        .expect("held");
}

/// Adds waiters that do not listen. They are more than one call of the script removes.
fn many_wait_in_vain(server: &RedisServer) {
    let entries: Vec<_> = (0..1_100)
        .map(|number| format!("0123456789abcdef/{number:032x} 2000"))
        .collect();
    let scored = entries.iter().flat_map(|entry| ["1", entry.as_str()]);
    let words: Vec<_> = ["ZADD", QUEUE].into_iter().chain(scored).collect();
    server.cli(&words);
}

#[tokio::test]
async fn more_dead_waiters_than_one_call_removes_keep_no_share_out() {
    needs!(redis);
    let (server, locks, other) = served_both().await;
    let first = entered(reader(&locks)).await;
    many_wait_in_vain(&server);
    let second = entered(reader(&other)).await;
    many_wait_in_vain(&server);
    let third = reader(&other).wait(Wait::Forever).acquire();
    let third = timeout(wait::PATIENCE, third).await.expect("at once");
    drop((first, second, third.expect("there is room")));
}
