//! Tests which calls may enter a share, and which options a share cannot have.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, LockRequest};

use super::Fixture;
use super::shares::{entered, permit, reader, writer};

pub(super) async fn a_share_may_be_entered_by_what_may_stand_beside_it(store: &Fixture) {
    let locks = store.manager().await;
    let inside = |outer: LockRequest, inner: fn(&LockManager) -> LockRequest| {
        let locks = locks.clone();
        async move {
            let inner = outer.run_with(|outer| async move {
                let inner = inner(&locks).run_with(|lock| async move { lock.fencing_token() });
                inner.await.map(|inner| inner == outer.fencing_token())
            });
            inner.await.expect("free")
        }
    };
    let read: fn(&LockManager) -> LockRequest = |locks| reader(locks);
    let write: fn(&LockManager) -> LockRequest = |locks| writer(locks);
    let five: fn(&LockManager) -> LockRequest = |locks| permit(locks, 5);
    for (outer, inner) in [
        (writer(&locks), read),
        (writer(&locks), five),
        (reader(&locks), read),
        (permit(&locks, 5), five),
        (permit(&locks, 3), five),
    ] {
        let same = inside(outer, inner).await.expect("it enters");
        assert!(same, "the same lease");
    }
    for (outer, inner) in [
        (reader(&locks), write),
        (permit(&locks, 5), write),
        (reader(&locks), five),
        (permit(&locks, 3), read),
        (permit(&locks, 6), five),
    ] {
        let error = inside(outer, inner)
            .await
            .expect_err("it would wait for itself");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        assert!(text.contains("would wait for itself"), "{error}");
        assert!(text.contains("a permit admits as many permits"), "{error}");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_reader_admits_one_nested_reader_at_a_time(store: &Fixture) {
    let locks = store.manager().await;
    let nested = || {
        let nested = reader(&locks).run(tokio::task::yield_now());
        async move { nested.await.map_err(|error| error.kind()) }
    };
    let waits = || reader(&locks).wait(lock_core::Wait::Forever).run(async {});
    let inside = async {
        let refused = tokio::join!(nested(), nested());
        assert_eq!(refused, (Ok(()), Err(ErrorKind::Busy)));
        let (one, other) = tokio::join!(waits(), waits());
        one.and(other).expect("one after the other");
    };
    reader(&locks).run(inside).await.expect("free");
    store.is_left_clean().await;
}

pub(super) async fn options_that_a_share_cannot_have_are_invalid(store: &Fixture) {
    let locks = store.manager().await;
    let second = Duration::from_secs(1);
    for (request, why) in [
        (permit(&locks, 0), "1 to 10000 permits"),
        (permit(&locks, 10_001), "1 to 10000 permits"),
        (permit(&locks, 5).read(), "`read` or `permits` twice"),
        (reader(&locks).permits(5), "`read` or `permits` twice"),
        (reader(&locks).cooldown(second), "no cooldown"),
        (permit(&locks, 5).cooldown(second), "no cooldown"),
        (reader(&locks).interop(lock_core::Interop::On), "no gaps"),
    ] {
        let checked = request.check().expect_err("invalid");
        assert!(checked.to_string().contains(why), "{checked}");
        let error = request.acquire().await.expect_err("invalid");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(why), "{error}");
    }
    let guard = entered(reader(&locks)).await;
    let error = guard.remember("answer", second).expect_err("invalid");
    assert!(error.to_string().contains("no record"), "{error}");
    guard.cooldown(second);
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

/// Several servers that vote cannot count permits, nor replace a token in one step.
pub(super) async fn permits_and_downgrades_are_invalid(store: &Fixture) {
    let locks = store.manager().await;
    let error = permit(&locks, 5).acquire().await.expect_err("invalid");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let why = "permits are not offered over several servers";
    assert!(error.to_string().contains(why), "{error}");
    let error = entered(writer(&locks)).await.downgrade().await;
    let error = error.expect_err("invalid");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let why = "cannot be downgraded, because they do not replace its token in one step";
    assert!(error.to_string().contains(why), "{error}");
    store.is_left_clean().await;
}
