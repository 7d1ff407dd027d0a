//! The choice of a manager, the types that can be sent, and stores shared by managers.

use std::time::Duration;

use lock_core::{
    Acquire, AsLockManager, Drained, Error, ErrorKind, FencingToken, Finding, FindingKind,
    HeldLock, LockGuard, LockHandle, LockKey, LockManager, LockRequest, ManagerBuilder, Scope,
    TryAcquire, Wait,
};

fn is_send_and_sync<T: Send + Sync + 'static>() {}
fn is_send<T: Send + 'static>() {}
fn sendable<T: Send>(value: T) -> T {
    value
}

#[test]
fn all_types_can_be_sent_and_shared_types_can_be_shared() {
    is_send_and_sync::<LockManager>();
    is_send_and_sync::<LockHandle>();
    is_send_and_sync::<LockGuard>();
    is_send_and_sync::<LockKey>();
    is_send_and_sync::<Error>();
    is_send_and_sync::<ErrorKind>();
    is_send_and_sync::<FencingToken>();
    is_send_and_sync::<HeldLock>();
    is_send_and_sync::<Drained>();
    is_send_and_sync::<Finding>();
    is_send_and_sync::<FindingKind>();
    is_send::<LockRequest>();
    is_send::<<LockRequest as IntoFuture>::IntoFuture>();
    is_send::<ManagerBuilder>();
    is_send::<Acquire>();
    is_send::<TryAcquire>();
    is_send::<Scope<Acquire>>();
}

#[tokio::test]
async fn the_futures_of_all_acquiring_methods_can_be_sent() {
    let locks = LockManager::in_memory();
    let guard = sendable(locks.lock("a").acquire()).await.unwrap();
    sendable(guard.release()).await.unwrap();
    drop(sendable(locks.lock("a").try_acquire()).await.unwrap());
    let spawned = tokio::spawn(locks.lock("a").into_future());
    drop(spawned.await.unwrap().unwrap());
    let other = locks.clone();
    let spawned = tokio::spawn(async move { other.lock_all(["a", "b"]).await });
    drop(spawned.await.unwrap().unwrap());
    sendable(locks.lock("b").run(async {})).await.unwrap();
    sendable(
        locks
            .lock("b")
            .run_with(|lock| async move { lock.remaining() }),
    )
    .await
    .unwrap();
    sendable(locks.scope(async {})).await;
    sendable(locks.drain(Duration::from_secs(5))).await;
    drop(sendable(LockManager::connect("memory:")).await.unwrap());
}

#[tokio::test]
async fn a_request_that_is_awaited_acquires_its_lock_and_waits_for_it() {
    let locks = LockManager::in_memory();
    let guard = locks.lock("k").await.unwrap();
    assert_eq!(guard.key(), "k");
    let refused = locks.lock("k").await.unwrap_err();
    assert!(refused.is_busy(), "{refused:?}");

    let (both, ()) = tokio::join!(
        async { locks.lock_all(["a", "k"]).wait(Wait::Forever).await },
        async {
            tokio::task::yield_now().await;
            guard.release().await.unwrap();
        }
    );
    assert_eq!(locks.held().len(), 2);
    assert!(both.unwrap().release().await.is_ok());

    let _readers = (
        locks.lock("r").read().await.unwrap(),
        locks.lock("r").read().await.unwrap(),
    );
    let _permit = locks.lock("p").permits(1).await.unwrap();
    assert!(locks.lock("p").permits(1).await.unwrap_err().is_full());
}

/// This is one test, because the whole process has one installed manager.
#[tokio::test]
async fn the_scope_precedes_the_installed_manager_and_only_one_can_be_installed() {
    let nothing = LockManager::installed().unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::Invalid);
    assert!(nothing.to_string().contains("install()"), "{nothing}");
    assert!(nothing.to_string().contains("spawn"), "{nothing}");
    let scoped = LockManager::in_memory();
    let spawned = scoped.scope(async {
        let lost = tokio::spawn(async { LockManager::installed().is_err() });
        let carried = LockManager::installed().unwrap();
        let carried = tokio::spawn(carried.scope(async { LockManager::installed().is_ok() }));
        (lost.await.unwrap(), carried.await.unwrap())
    });
    assert_eq!(spawned.await, (true, true));

    let (first, second) = (LockManager::in_memory(), LockManager::in_memory());
    first.install().unwrap();
    first.clone().install().unwrap();
    let again = second.install().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Invalid);
    assert!(again.to_string().contains("scope"), "{again}");

    let held = LockManager::installed()
        .unwrap()
        .lock("k")
        .acquire()
        .await
        .unwrap();
    assert_eq!(first.held().len(), 1);
    let inside =
        second.scope(async { LockManager::installed().unwrap().lock("k").acquire().await });
    inside
        .await
        .expect("another store has another lock")
        .release()
        .await
        .unwrap();
    held.release().await.unwrap();
}

#[tokio::test]
async fn embedded_stores_are_shared_only_by_name() {
    let shared = || LockManager::connect_lazy("memory:managers").unwrap();
    let (one, other) = (shared(), shared());
    let guard = one.lock("k").acquire().await.unwrap();
    assert!(other.lock("k").try_acquire().await.unwrap().is_none());
    assert!(
        LockManager::in_memory()
            .lock("k")
            .try_acquire()
            .await
            .unwrap()
            .is_some()
    );
    let waiting = tokio::spawn(other.lock("k").wait(Duration::from_secs(20)).acquire());
    tokio::task::yield_now().await;
    let older = guard.fencing_token();
    guard.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert!(next.fencing_token() > older);
}

#[tokio::test]
async fn a_drained_manager_grants_no_lock_and_reports_what_is_left() {
    let locks = LockManager::in_memory();
    let guard = locks.lock("k").acquire().await.unwrap();
    let left = locks.drain(Duration::from_millis(1)).await;
    assert_eq!(
        (left.held(), left.releasing(), left.is_complete()),
        (1, 0, false)
    );
    let refused = locks.lock("other").acquire().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    guard.release().await.unwrap();
    assert!(locks.drain(Duration::from_secs(20)).await.is_complete());
}

#[tokio::test]
async fn a_reference_an_arc_and_a_custom_type_provide_a_manager() {
    struct App(LockManager);
    impl AsLockManager for App {
        fn as_lock_manager(&self) -> LockManager {
            self.0.clone()
        }
    }
    let app = std::sync::Arc::new(App(LockManager::in_memory()));
    let guard = app.as_lock_manager().lock("k").acquire().await.unwrap();
    assert_eq!((&&app).as_lock_manager().held()[0].key(), "k");
    drop(guard);
}

#[cfg(feature = "test-util")]
mod commanded {
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
}
