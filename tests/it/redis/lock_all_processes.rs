//! Tests locks of several keys whose owners are separate processes: killed, and many at once.

use std::time::Duration;

use lock_core::{LockManager, LockRequest, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::processes::{SERVER, process, says};
use super::{keys, long, manager, taken};

fn all(locks: &LockManager, keys: &[&str]) -> LockRequest {
    locks.lock_all(keys.iter().copied()).ttl(long())
}

#[tokio::test]
async fn a_waiter_whose_process_was_killed_holds_lower_keys_for_a_ttl_at_most() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = manager(&server.url()).await;
    let last = taken(&locks, "c", long()).await;
    let first = taken(&locks, "a", long()).await;
    let mut waiter = process("redis::lock_all_processes::waits_for_three_keys", &server);
    says(&waiter, "waiting");
    wait::eventually("it waits for the first key", async || {
        server.keys().contains(&"lockkit:!q:{a}".to_owned())
    })
    .await;
    first.release().await.expect("held");
    wait::eventually("it holds the lower keys", async || {
        server.get("lockkit:b").is_some()
    })
    .await;
    waiter.kill();
    let next = all(&locks, &["a", "b"]).wait(Wait::Forever).acquire();
    let next = timeout(wait::PATIENCE, next).await.expect("they run out");
    next.expect("free").release().await.expect("held");
    last.release().await.expect("held");
}

async fn parent() -> Option<LockManager> {
    Some(manager(&std::env::var(SERVER).ok()?).await)
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn waits_for_three_keys() {
    let Some(locks) = parent().await else { return };
    println!("\nwaiting");
    let request = locks.lock_all(["a", "b", "c"]).ttl(Duration::from_secs(2));
    let guard = request
        .wait(Wait::Forever)
        .acquire()
        .await
        .expect("its turn");
    println!("\nholding");
    guard.lost().await;
}

/// The keys of the processes below, and how often each process takes some of them.
const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
const TURNS: u32 = 60;

/// Takes random pairs and singles. Under its keys it counts in a ledger that knows nothing of locks.
#[tokio::test]
#[ignore = "a process that other tests start"]
async fn takes_random_pairs_and_singles() {
    let Some(locks) = parent().await else { return };
    let url = std::env::var(SERVER).expect("set by the test");
    let client = lock_core::redis1::Client::open(url).expect("a URL");
    let mut ledger = client
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    let mut random = u64::from(std::process::id()) | 1;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below).expect("small")
    };
    for _ in 0..TURNS {
        let count = next(3) + 1;
        let keys: Vec<&str> = (0..count).map(|_| KEYS[next(5)]).collect();
        let request = locks.lock_all(keys).ttl(Duration::from_secs(5));
        let guard = request
            .wait(Wait::Forever)
            .acquire()
            .await
            .expect("its turn");
        for key in guard.keys() {
            let inside: i64 = lock_core::redis1::cmd("INCR")
                .arg(format!("inside:{key}"))
                .query_async(&mut ledger)
                .await
                .expect("an answer");
            assert_eq!(inside, 1, "another owner is inside");
            let raised: i64 = lock_core::redis1::cmd("EVAL")
                .arg("local last = tonumber(redis.call('GET', KEYS[1]) or '0') redis.call('SET', KEYS[1], ARGV[1]) return last < tonumber(ARGV[1]) and 1 or 0")
                .arg(1)
                .arg(format!("fence:{key}"))
                .arg(u64::from(guard.fencing_token()))
                .query_async(&mut ledger)
                .await
                .expect("an answer");
            assert_eq!(raised, 1, "the token is not above the last one of the key");
        }
        tokio::task::yield_now().await;
        for key in guard.keys() {
            let _: i64 = lock_core::redis1::cmd("DECR")
                .arg(format!("inside:{key}"))
                .query_async(&mut ledger)
                .await
                .expect("an answer");
        }
        match next(3) {
            0 => drop(guard),
            1 => guard.release_in_background(),
            _ => guard.release().await.expect("held"),
        }
    }
    let left = locks.drain(wait::PATIENCE).await;
    assert!(left.is_complete());
    println!("\ndone");
}

#[tokio::test]
async fn random_pairs_and_singles_of_eight_processes_exclude_each_other_and_never_deadlock() {
    needs!(redis);
    let server = RedisServer::start();
    let name = "redis::lock_all_processes::takes_random_pairs_and_singles";
    let processes: Vec<_> = (0..8).map(|_| process(name, &server)).collect();
    for process in &processes {
        let done = process.line(wait::PATIENCE * 4, |line| {
            line == "done" || line.contains("panicked")
        });
        assert_eq!(done.as_deref(), Some("done"), "{}", process.output());
    }
    let left = keys(&server);
    let left: Vec<_> = left
        .iter()
        .filter(|key| key.starts_with("lockkit:"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
