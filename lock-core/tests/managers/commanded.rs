//! Managers whose store and clock the test commands.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{ErrorKind, LockManager};

#[tokio::test]
async fn a_store_that_hangs_answers_nothing_until_it_recovers() {
    let locks = LockManager::in_memory();
    let store = locks.test_store().unwrap();
    let held = locks.lock("held").acquire().await.unwrap();
    store.hang();
    let given_up = locks
        .lock("k")
        .acquire_timeout(Duration::from_millis(1))
        .acquire()
        .await;
    assert_eq!(given_up.unwrap_err().kind(), ErrorKind::Unavailable);

    let mut release = pin!(held.release());
    let mut context = Context::from_waker(Waker::noop());
    assert!(release.as_mut().poll(&mut context).is_pending());
    assert_eq!(store.taken(), 1);
    store.recover();
    release.await.unwrap();
    assert!(locks.drain(Duration::from_secs(60)).await.is_complete());
    assert_eq!(
        store.taken(),
        0,
        "a question that was given up is not asked"
    );
}

#[tokio::test]
async fn a_handle_reports_how_long_its_lock_was_held() {
    let clock = ManualClock::new();
    let manager = LockManager::builder("memory:").clock(clock.clone());
    let locks = manager.connect().await.unwrap();
    let guard = locks.lock("k").acquire().await.unwrap();
    clock.advance(Duration::from_secs(3));
    assert_eq!(guard.held_for(), Duration::from_secs(3));
}

#[tokio::test]
async fn a_wait_runs_out_when_the_clock_is_moved_past_its_end() {
    let clock = ManualClock::new();
    let manager = LockManager::builder("memory:").clock(clock.clone());
    let locks = manager.connect().await.unwrap();
    let store = locks.test_store().unwrap();
    store.seize("k", Duration::from_secs(60));
    let waiter = tokio::spawn(locks.lock("k").wait(Duration::from_secs(2)).acquire());
    while store.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    clock.advance(Duration::from_millis(1_999));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!waiter.is_finished());
    clock.advance(Duration::from_millis(1));
    let ended = tokio::time::timeout(Duration::from_secs(60), waiter).await;
    let refused = ended.expect("in time").unwrap().unwrap_err();
    assert!(refused.is_busy(), "{refused:?}");
}

async fn named(name: &str, clock: &ManualClock) -> LockManager {
    let manager = LockManager::builder(name).clock(clock.clone());
    manager.connect().await.unwrap()
}

#[tokio::test]
async fn a_cooldown_of_a_named_store_ends_by_the_manual_clock() {
    let clock = ManualClock::new();
    let one = named("memory:cooldown-test", &clock).await;
    let other = named("memory:cooldown-test", &clock).await;
    let click = |locks: &LockManager| {
        let request = locks.lock("click:ada").cooldown(Duration::from_secs(2));
        request.run(async {})
    };
    click(&one).await.unwrap();
    clock.advance(Duration::from_millis(1_999));
    let refused = click(&other).await.unwrap_err();
    assert!(refused.is_cooling_down(), "{refused:?}");
    clock.advance(Duration::from_millis(1));
    click(&other).await.unwrap();
}

#[tokio::test]
async fn one_of_two_managers_runs_each_night_whenever_the_test_starts() {
    let day = Duration::from_secs(24 * 3_600);
    for hour in 0..24 {
        let clock = ManualClock::new();
        clock.advance(day * hour / 24);
        let (ran, mut runs) = tokio::sync::mpsc::unbounded_channel();
        let mut managers = Vec::new();
        for _ in 0..2 {
            let locks = named(&format!("memory:nights-{hour}"), &clock).await;
            let ran = ran.clone();
            tokio::spawn(locks.every("report", day).run(move |tick| {
                ran.send(tick.ends_unix_micros()).unwrap();
                async {}
            }));
            managers.push(locks);
        }
        let mut run = async || {
            let run = tokio::time::timeout(Duration::from_secs(60), runs.recv());
            run.await.expect("a run in each night").unwrap()
        };
        let first = run().await;
        for night in 1..4 {
            clock.advance(day);
            assert_eq!(run().await, first + night * 86_400_000_000);
        }
        for locks in managers {
            assert!(locks.drain(Duration::from_secs(60)).await.is_complete());
        }
    }
}

#[tokio::test]
async fn a_named_store_refuses_a_manager_with_another_clock() {
    let clock = ManualClock::new();
    let first = named("memory:clocks-test", &clock).await;
    for other in [
        LockManager::builder("memory:clocks-test"),
        LockManager::builder("memory:clocks-test").clock(ManualClock::new()),
        LockManager::quorum(["memory:clocks-test"]),
    ] {
        let refused = other.connect().await.unwrap_err();
        assert!(refused.is_invalid(), "{refused:?}");
        let shown = refused.to_string();
        assert!(shown.contains("ManualClock") && shown.contains("name of its own"));
    }
    let second = named("memory:clocks-test", &clock).await;
    let _guard = first.lock("k").await.unwrap();
    assert!(second.lock("k").try_acquire().await.unwrap().is_none());
}
