//! Tests guards that end in unusual places, and managers that drain.

use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::wait;
use tokio::runtime::Builder;

use super::{Fixture, drains, kind, long, short};

pub(super) async fn a_guard_dropped_outside_a_runtime_is_released(store: &Fixture) {
    let guard = store.lock("k").await.acquire().await.expect("free");
    std::thread::spawn(move || drop(guard))
        .join()
        .expect("no panic");
    store.is_left_clean().await;
}

pub(super) async fn a_guard_dropped_in_a_panic_is_released(store: &Fixture) {
    let guard = store.lock("k").await.acquire().await.expect("free");
    let panicked = std::thread::spawn(move || {
        let _guard = guard;
        panic!("on purpose");
    });
    panicked.join().expect_err("the thread panicked");
    store.is_left_clean().await;
}

pub(super) async fn a_guard_dropped_while_its_runtime_shuts_down_is_released(store: &Fixture) {
    let locks = store.manager().await;
    std::thread::spawn(move || {
        for builder in [
            &mut Builder::new_current_thread(),
            &mut Builder::new_multi_thread(),
        ] {
            let runtime = builder
                .worker_threads(1)
                .enable_all()
                .build()
                .expect("a runtime");
            let (entered, inside) = std::sync::mpsc::channel();
            let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
            let task = async move {
                let guard = request.acquire().await.expect("free");
                entered.send(()).expect("the receiver lives");
                std::future::pending::<()>().await;
                drop(guard);
            };
            let handle = runtime.spawn(task);
            runtime.block_on(async {
                while inside.try_recv().is_err() {
                    tokio::task::yield_now().await;
                }
            });
            // The runtime drops its task, and with it the guard.
            drop(runtime);
            assert!(handle.is_finished());
        }
    })
    .join()
    .expect("no panic");
    store.is_left_clean().await;
}

pub(super) async fn a_guard_outlives_its_manager(store: &Fixture) {
    let locks = store.manager().await;
    let guard = locks.lock("k").ttl(short()).acquire().await.expect("free");
    drop(locks);
    let lost = tokio::time::timeout(short() * 2, guard.lost()).await;
    assert!(lost.is_err(), "the lock is still renewed");
    drop(guard);
    store.is_left_clean().await;
}

pub(super) async fn a_drained_manager_grants_no_lock(store: &Fixture) {
    let locks = store.manager().await;
    let left = locks.drain(Duration::ZERO).await;
    assert_eq!((left.held(), left.releasing()), (0, 0));
    assert_eq!(
        kind(locks.lock("k").acquire().await),
        ErrorKind::Unavailable
    );
    assert_eq!(
        kind(locks.lock("k").try_acquire().await),
        ErrorKind::Unavailable
    );
    assert_eq!(
        kind(locks.lock("k").run(async {}).await),
        ErrorKind::Unavailable
    );
    let others = store.lock("k").await.acquire().await;
    drop(others.expect("other managers still lock"));
}

pub(super) async fn draining_waits_for_guards_and_releases(store: &Fixture) {
    let locks = store.manager().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let (started, draining) = std::sync::mpsc::channel();
    let manager = locks.clone();
    let drained = tokio::spawn(async move {
        started.send(()).expect("the receiver lives");
        manager.drain(long()).await
    });
    tokio::task::yield_now().await;
    draining.recv().expect("the drain has begun");
    assert!(!drained.is_finished());
    assert!(guard.is_valid());
    drop(guard);
    let left = drained.await.expect("no panic");
    assert_eq!((left.held(), left.releasing()), (0, 0));
    assert_eq!(store.taken(), 0, "released when the drain has ended");
}

pub(super) async fn draining_says_what_is_left_when_time_is_up(store: &Fixture) {
    let locks = store.manager().await;
    let one = locks.lock("a").ttl(long()).acquire().await.expect("free");
    let two = locks.lock("b").ttl(long()).acquire().await.expect("free");
    let left = locks.drain(Duration::from_millis(50)).await;
    assert_eq!((left.held(), left.releasing()), (2, 0));
    drop((one, two));
    drains(&locks).await;
}

pub(super) async fn draining_does_not_wait_for_waiters(store: &Fixture) {
    let owner = store.lock("k").await.acquire().await.expect("free");
    let locks = store.manager().await;
    let waiters: Vec<_> = (0..3)
        .map(|_| tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire()))
        .collect();
    wait::eventually("the waiter waits", async || store.waiting() == 1).await;
    let left = locks.drain(wait::PATIENCE).await;
    assert_eq!(left.held(), 0, "nothing is held");
    for waiter in waiters {
        let answer = tokio::time::timeout(wait::PATIENCE, waiter).await;
        assert_eq!(
            kind(answer.expect("told at once").expect("no panic")),
            ErrorKind::Unavailable
        );
    }
    drop(owner);
}

/// Returns the number of races: 300, or that of `LOCK_TESTS_RACES`.
fn races() -> u32 {
    let chosen = std::env::var("LOCK_TESTS_RACES").ok();
    chosen.map_or(300, |text| text.parse().expect("a number"))
}

/// Holds each lock for about the time until its renewal, a little longer in every round.
async fn race(locks: &LockManager, rounds: u32) {
    let ttl = Duration::from_millis(12);
    for round in 0..rounds {
        // Each round has a key of its own, so that the key of one round cannot be taken for the
        // next one's.
        let guard = match locks.lock(format!("k{round}")).ttl(ttl).acquire().await {
            Ok(guard) => guard,
            // The machine was busy elsewhere for longer than the ttl.
            Err(error) if error.kind() == ErrorKind::Unavailable => continue,
            Err(error) => panic!("{error}"),
        };
        let span = ttl / 3 + Duration::from_micros(u64::from(round % 16) * 100);
        let start = Instant::now();
        while start.elapsed() < span {
            tokio::task::yield_now().await;
        }
        match round % 3 {
            0 => drop(guard),
            1 => guard.release_in_background(),
            // The lock is lost if the machine was busy elsewhere for the length of the ttl.
            _ => drop(guard.release().await),
        }
    }
}

pub(super) async fn releases_that_race_renewals_leave_nothing(store: &Fixture) {
    let locks = store.manager().await;
    race(&locks, races()).await;
    assert!(locks.held().is_empty());
    store.is_left_clean().await;
    // This is longer than any ttl, so that only a lock that is still renewed would be left.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(store.taken(), 0);
}

pub(super) async fn a_drain_after_many_races_does_not_wait_for_closed_leases(store: &Fixture) {
    let locks = store.manager().await;
    let tasks: Vec<_> = (0..races())
        .map(|index| {
            let request = locks.lock(format!("k{index}")).ttl(Duration::from_secs(60));
            tokio::task::spawn_blocking(move || {
                let runtime = Builder::new_current_thread().enable_all().build();
                let guard = runtime.expect("a runtime").block_on(request.acquire());
                drop(guard.expect("free"));
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let left = locks.drain(Duration::from_secs(9)).await;
    assert_eq!((left.held(), left.releasing()), (0, 0));
    store.is_left_clean().await;
}
