//! Tests a body that runs under the lock.
//!
//! The tests check the order in which things end, and the caller's result.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{ErrorKind, LockManager, OnLost, ReleaseMode, Wait};
use lock_tests::wait;
use tokio::sync::oneshot;

use super::{Fixture, kind, long, short};

/// A local of a body. When it is dropped, it checks that the lock is still held.
struct Witness {
    store: Arc<dyn Fn() -> usize + Send + Sync>,
    taken: Arc<AtomicUsize>,
}

const STILL_ALIVE: usize = usize::MAX;

impl Witness {
    /// Makes a witness that counts taken keys by an attempt with a manager of its own.
    fn of(other: LockManager) -> (Witness, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(STILL_ALIVE));
        let look = move || {
            let attempt = other.lock("k").try_acquire();
            let free = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                runtime
                    .expect("a runtime")
                    .block_on(attempt)
                    .expect("an answer")
                    .is_some()
            });
            usize::from(!free.join().expect("no panic"))
        };
        let witness = Witness {
            store: Arc::new(look),
            taken: Arc::clone(&taken),
        };
        (witness, taken)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.taken.store((self.store)(), Ordering::SeqCst);
    }
}

#[track_caller]
fn went_under_the_lock(taken: &AtomicUsize) {
    assert_eq!(
        taken.load(Ordering::SeqCst),
        1,
        "the local was dropped while the lock was held"
    );
}

pub(super) async fn the_body_runs_under_the_lock_and_its_result_is_the_result(store: &Fixture) {
    let locks = store.manager().await;
    let other = store.manager().await;
    let request = locks.lock("k").ttl(long());
    let answer = request
        .run_with(|lock| async move {
            assert!(lock.is_valid());
            assert_eq!(lock.key(), "k");
            assert_eq!(kind(other.lock("k").acquire().await), ErrorKind::Busy);
            u64::from(lock.fencing_token())
        })
        .await;
    assert!(answer.expect("the body ran") > 0);
    assert_eq!(store.taken(), 0, "released when the call returns");
}

pub(super) async fn the_body_does_not_run_without_the_lock(store: &Fixture) {
    let first = store.lock("k").await.acquire().await.expect("free");
    let ran = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ran);
    let body = async move { flag.store(true, Ordering::SeqCst) };
    assert_eq!(kind(store.lock("k").await.run(body).await), ErrorKind::Busy);
    assert!(!ran.load(Ordering::SeqCst));
    drop(first);
}

pub(super) async fn the_locals_of_a_body_are_dropped_before_the_release(store: &Fixture) {
    for release in [ReleaseMode::Await, ReleaseMode::Background] {
        let (witness, taken) = Witness::of(store.manager().await);
        let request = store.lock("k").await.release(release);
        // The body captures the witness and never names it, because arguments live as long as
        // the body too.
        let body = async move {
            let _ = &witness;
        };
        request
            .wait(Wait::Forever)
            .run(body)
            .await
            .expect("the body ran");
        went_under_the_lock(&taken);
    }
}

pub(super) async fn the_locals_of_a_cancelled_body_are_dropped_before_the_release(store: &Fixture) {
    let (witness, taken) = Witness::of(store.manager().await);
    let (entered, inside) = oneshot::channel();
    let body = async move {
        let _witness = witness;
        entered.send(()).expect("the receiver lives");
        std::future::pending::<()>().await;
    };
    let task = tokio::spawn(store.lock("k").await.run(body));
    inside.await.expect("the body runs");
    task.abort();
    assert!(task.await.expect_err("aborted").is_cancelled());
    went_under_the_lock(&taken);
    store.is_left_clean().await;
}

pub(super) async fn the_locals_of_a_panicking_body_are_dropped_before_the_release(store: &Fixture) {
    let (witness, taken) = Witness::of(store.manager().await);
    let body = async move {
        let _witness = AssertUnwindSafe(witness);
        panic!("on purpose");
    };
    let task = tokio::spawn(store.lock("k").await.run(body));
    assert!(task.await.expect_err("the body panicked").is_panic());
    went_under_the_lock(&taken);
    store.is_left_clean().await;
}

pub(super) async fn the_locals_of_a_body_that_lost_its_lock_are_dropped_before_the_caller_gets_the_loss(
    store: &Fixture,
) {
    let (witness, taken) = Witness::of(store.manager().await);
    let (entered, inside) = oneshot::channel();
    let body = async move {
        let _witness = witness;
        entered.send(()).expect("the receiver lives");
        std::future::pending::<()>().await;
    };
    let task = tokio::spawn(store.lock("k").await.ttl(short()).run(body));
    inside.await.expect("the body runs");
    store.overwrite("k");
    assert_eq!(kind(task.await.expect("no panic")), ErrorKind::Lost);
    assert_ne!(taken.load(Ordering::SeqCst), STILL_ALIVE);
    assert_eq!(store.taken(), 1, "the other client has the key");
}

pub(super) async fn the_captures_of_a_refused_body_are_dropped(store: &Fixture) {
    let first = store.lock("k").await.acquire().await.expect("free");
    let held = Arc::new(());
    let argument = Arc::clone(&held);
    let body = async move { drop(argument) };
    let mut refused = Box::pin(store.lock("k").await.run(body));
    assert_eq!(kind(refused.as_mut().await), ErrorKind::Busy);
    assert_eq!(
        Arc::strong_count(&held),
        1,
        "although the future is still there"
    );
    drop(first);
}

pub(super) async fn a_body_that_holds_too_long_is_dropped_before_the_lock_is_released(
    store: &Fixture,
) {
    let (witness, taken) = Witness::of(store.manager().await);
    let request = store.lock("k").await.max_hold(Duration::from_millis(100));
    let body = async move {
        let _witness = witness;
        std::future::pending::<()>().await;
    };
    let error = request.run(body).await.expect_err("too long");
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::Lost, "lock_max_hold")
    );
    assert!(error.is_max_hold());
    went_under_the_lock(&taken);
    store.is_left_clean().await;
}

pub(super) async fn max_hold_ends_a_body_that_ignores_loss_too(store: &Fixture) {
    let request = store.lock("k").await.max_hold(Duration::from_millis(100));
    let request = request.on_lost(OnLost::Ignore);
    let error = request.run(std::future::pending::<()>()).await;
    assert!(error.expect_err("too long").is_max_hold());
    store.is_left_clean().await;
}

pub(super) async fn a_guard_that_holds_too_long_is_lost_and_its_key_stays_taken(store: &Fixture) {
    let request = store.lock("k").await.max_hold(Duration::from_millis(100));
    let guard = request.acquire().await.expect("free");
    guard.lost().await;
    assert!(!guard.is_valid());
    // The kit cannot drop the work of a bare guard, so it must not release the key under that
    // work.
    assert_eq!(store.taken(), 1);
    assert_eq!(kind(store.lock("k").await.acquire().await), ErrorKind::Busy);
    let error = guard.release().await.expect_err("too long");
    assert!(error.is_max_hold());
    store.is_left_clean().await;
}

pub(super) async fn a_body_that_ignores_loss_runs_to_its_end(store: &Fixture) {
    let request = store.lock("k").await.ttl(short()).on_lost(OnLost::Ignore);
    let (entered, inside) = oneshot::channel();
    let task = tokio::spawn(request.run_with(|lock| async move {
        entered.send(()).expect("the receiver lives");
        lock.lost().await;
        assert!(!lock.is_valid());
        tokio::task::yield_now().await;
        "to the end"
    }));
    inside.await.expect("the body runs");
    store.overwrite("k");
    assert_eq!(
        task.await.expect("no panic").expect("ignored"),
        "to the end"
    );
    assert_eq!(store.taken(), 1, "the other client has the key");
}

pub(super) async fn a_body_whose_lock_was_lost_before_its_first_poll_does_not_begin(
    store: &Fixture,
) {
    let clock = ManualClock::new();
    let locks = store.manager_by(&clock).await;
    for on_lost in [OnLost::Ignore, OnLost::Cancel] {
        let request = locks.lock("k").ttl(long()).on_lost(on_lost);
        let body = request.run_with(|_| {
            // The process is paused between the grant and the body.
            clock.advance(long());
            async { panic!("the body began") }
        });
        let lost = body.await.map(|()| "done");
        assert_eq!(kind(lost), ErrorKind::Lost);
        store.is_left_clean().await;
    }
}

pub(super) async fn a_release_in_the_background_arrives_too(store: &Fixture) {
    let request = store.lock("k").await.release(ReleaseMode::Background);
    assert_eq!(request.run(async { 7 }).await.expect("the body ran"), 7);
    store.is_left_clean().await;
}

pub(super) async fn a_body_whose_loss_was_not_noticed_keeps_its_result(store: &Fixture) {
    let body = async {
        store.overwrite("k");
        "done"
    };
    // The store refuses the release, but the work is done.
    assert_eq!(
        store.lock("k").await.run(body).await.expect("the body ran"),
        "done"
    );
    assert_eq!(store.taken(), 1, "the other client has the key");
}

pub(super) async fn a_cooldown_follows_the_body(store: &Fixture) {
    for release in [ReleaseMode::Await, ReleaseMode::Background] {
        let locks = store.manager().await;
        let request = locks
            .lock("k")
            .cooldown(Duration::from_secs(60))
            .release(release);
        request.run(async {}).await.expect("the body ran");
        locks.drain(wait::PATIENCE).await;
        let error = store.lock("k").await.acquire().await.expect_err("cooling");
        assert!(error.is_cooling_down());
        store.delete("k");
    }
}

pub(super) async fn after_an_err_a_run_cools_down_only_if_its_condition_accepts_it(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let request = || locks.lock("k").cooldown(Duration::from_secs(60));
    let failed = async || Err::<(), _>("declined");
    for _ in 0..2 {
        let ran = request().run(failed()).cooldown_if(Result::is_ok).await;
        assert!(ran.expect("free").is_err());
    }
    // The same holds for a body that is inside the lock already.
    let nested = request().run(failed()).cooldown_if(Result::is_ok);
    let ran = locks.lock("k").run(nested).await.expect("free");
    assert!(ran.expect("inside").is_err());
    let done = request().run(async { Ok::<_, ()>(()) });
    let done = done.cooldown_if(Result::is_ok).await;
    assert!(done.expect("free").is_ok());
    let error = locks.lock("k").acquire().await.expect_err("cooling");
    assert!(error.is_cooling_down());
}
