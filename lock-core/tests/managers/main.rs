//! The choice of a manager, the types that can be sent, and stores shared by managers.
#![allow(clippy::disallowed_methods, reason = "tests run on the real machine")]

#[cfg(feature = "test-util")]
mod commanded;

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
