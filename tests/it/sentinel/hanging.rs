//! Tests sentinels that hang or answer only errors, while their master is healthy.
//!
//! `LOCK_TESTS_SENTINELS` sets for how many seconds they hang under load.

use std::env;
use std::time::{Duration, Instant};

use lock_core::{LockGuard, LockManager};
use lock_tests::{Answer, FakeServer, Proxy, RedisServer, ReplicaSet, Sentinels, needs, wait};
use tokio::time::{MissedTickBehavior, interval};

use super::mistakes::naming;
use super::{long, once, taken};
use crate::conformance::Watched;
use crate::steps::{on_a_new_runtime, starts_although_slow};

/// The shortest ttl. Its owner is the first to notice if no lock is renewed.
const SHORT: Duration = Duration::from_millis(600);
const HELD: u32 = 200;

/// Starts sentinels that do not take a slow server for dead.
fn patient() -> Watched {
    let set = ReplicaSet::start(1);
    let patience = Duration::from_secs(60);
    let sentinels = Sentinels::with(&RedisServer::options(), &set, 3, patience);
    Watched { set, sentinels }
}

fn hanging_for() -> Duration {
    let told = env::var("LOCK_TESTS_SENTINELS");
    Duration::from_secs(told.map_or(5, |seconds| seconds.parse().expect("a number")))
}

/// Takes locks with ttls from the shortest to half a minute.
async fn held(locks: &LockManager) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for number in 0..HELD {
        let more = (Duration::from_secs(30) - SHORT) * number / (HELD - 1);
        guards.push(taken(locks, &format!("held:{number}"), SHORT + more).await);
    }
    guards
}

/// Takes and releases a hundred locks a second. Returns their number and the longest time of an
/// acquire.
async fn load(locks: &LockManager, span: Duration) -> (usize, Duration) {
    let mut tick = interval(Duration::from_millis(10));
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (begun, mut taken, mut longest) = (Instant::now(), 0, Duration::ZERO);
    while begun.elapsed() < span {
        tick.tick().await;
        let asked = Instant::now();
        let guard = locks.lock(format!("free:{}", taken % 20)).ttl(long());
        let guard = guard.acquire().await.expect("free, on a healthy master");
        longest = longest.max(asked.elapsed());
        guard.release().await.expect("held");
        taken += 1;
    }
    (taken, longest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hanging_sentinels_of_a_healthy_master_cost_no_lock_and_no_acquisition() {
    needs!(redis);
    let watched = patient();
    let builder = LockManager::builder(&watched.sentinels.url());
    let builder = builder.operation_timeout(Duration::from_secs(2));
    let locks = builder.connect().await.expect("a manager");
    let guards = held(&locks).await;
    let [one, others @ ..] = watched.sentinels.servers() else {
        panic!("three sentinels");
    };
    one.stop();
    let (first, first_longest) = load(&locks, hanging_for() / 4).await;
    others.iter().for_each(RedisServer::stop);
    let (then, then_longest) = load(&locks, hanging_for()).await;
    println!(
        "one sentinel hung: {first} locks, at most {first_longest:?} each; all hung: {then} locks, at most {then_longest:?} each"
    );
    let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    assert_eq!(lost, 0);
    for guard in guards {
        guard.release().await.expect("held");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_runtime_connects_while_all_sentinels_hang() {
    needs!(redis);
    let watched = patient();
    let builder = LockManager::builder(&watched.sentinels.url());
    // An operation has half of this time to find its server.
    let builder = builder.operation_timeout(Duration::from_millis(800));
    let locks = builder.connect().await.expect("a manager");
    let hurried = LockManager::builder(&watched.sentinels.url());
    let hurried = hurried.operation_timeout(Duration::from_millis(200));
    let hurried = hurried.connect().await.expect("a manager");
    watched
        .sentinels
        .servers()
        .iter()
        .for_each(RedisServer::stop);
    tokio::task::block_in_place(|| {
        for _ in 0..5 {
            on_a_new_runtime(&locks, "new").expect("a healthy master");
        }
        wait::until(
            "the manager does not wait for sentinels known to hang",
            // Once is not enough: a look may have begun a moment before the request.
            || (0..8).all(|_| on_a_new_runtime(&hurried, "new").is_ok()),
        );
    });
}

#[tokio::test]
async fn a_broken_connection_is_replaced_while_all_sentinels_hang() {
    needs!(redis_7);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let sentinel = naming(proxy.port());
    let url = format!("redis-sentinel://{}?service=a", sentinel.address());
    let locks = LockManager::connect(&url).await.expect("a manager");
    let guard = taken(&locks, "held", Duration::from_secs(2)).await;
    sentinel.set(Answer::Silence);
    for _ in 0..5 {
        proxy.cut();
        wait::eventually("locks can be taken again", async || {
            locks.lock("k").acquire().await.is_ok()
        })
        .await;
    }
    let ends = || server.cli(&["PEXPIRETIME", "lockkit:held"]);
    let before = ends();
    wait::eventually("the lock is renewed", async || ends() != before).await;
    guard.release().await.expect("held");
}

/// Counts how often a sentinel was asked for the master.
fn looks(sentinel: &FakeServer) -> usize {
    let commands = sentinel.commands();
    commands.iter().filter(|name| *name == "SENTINEL").count() / 2
}

#[tokio::test]
async fn while_the_master_answers_sentinels_are_asked_at_most_twice_a_second() {
    needs!(redis);
    let server = RedisServer::start();
    let sentinel = naming(server.port());
    let url = format!("redis-sentinel://{}?service=a", sentinel.address());
    let locks = LockManager::connect(&url).await.expect("a manager");
    // The lock is renewed ten times a second.
    let guard = taken(&locks, "held", Duration::from_millis(300)).await;
    let (begun, before) = (Instant::now(), looks(&sentinel));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let most = begun.elapsed().as_millis() / 500 + 1;
    let looks = looks(&sentinel) - before;
    assert!(
        looks as u128 <= most,
        "{looks} refreshes instead of {most} at most"
    );
    drop(guard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_answer_nothing_but_errors_cost_no_lock() {
    needs!(redis);
    let server = RedisServer::start();
    let sentinels = [(); 2].map(|()| naming(server.port()));
    let url = format!(
        "redis-sentinel://{},{}?service=a",
        sentinels[0].address(),
        sentinels[1].address()
    );
    let locks = LockManager::connect(&url).await.expect("a manager");
    let guard = taken(&locks, "held", Duration::from_secs(2)).await;
    let forbidden = Answer::Error("NOPERM this user has no permissions".to_owned());
    for (one, other) in [
        (Answer::Loading, forbidden.clone()),
        (forbidden, Answer::Garbage),
    ] {
        sentinels[0].set(one);
        sentinels[1].set(other);
        let asked = looks(&sentinels[0]);
        wait::eventually("the sentinels are asked", async || {
            looks(&sentinels[0]) > asked + 2
        })
        .await;
        tokio::task::block_in_place(|| on_a_new_runtime(&locks, "new")).expect("a healthy master");
    }
    guard.release().await.expect("held");
    // One good sentinel beside a bad one is enough to connect.
    sentinels[1].set(Answer::Master {
        port: server.port(),
        epoch: 0,
    });
    let other = LockManager::connect(&url).await.expect("a manager");
    once(&other, "k").await;
}

#[tokio::test]
async fn a_manager_connects_while_one_of_three_hangs() {
    needs!(redis);
    let watched = patient();
    watched.sentinels.servers()[0].stop();
    let locks = LockManager::connect(&watched.sentinels.url()).await;
    once(&locks.expect("a manager"), "k").await;
}

#[tokio::test]
async fn a_manager_that_starts_waits_for_the_first_answer_longer_than_one_that_has_failed() {
    needs!(redis);
    let watched = patient();
    let proxy = Proxy::to(watched.sentinels.servers()[0].address());
    let (address, service) = (proxy.address(), Sentinels::SERVICE);
    let url = format!("redis-sentinel://{address}?service={service}");
    starts_although_slow(&url, &proxy).await;
}
