//! The body, its locals and all arguments are dropped before the release, in whatever way the call
//! ends.

use std::{
    future::{Future, pending},
    panic::AssertUnwindSafe,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use lock_core::{Error, ErrorKind, LockManager, distributed_lock};

use crate::probe::{Probe, Watch};

struct Pair {
    named: Probe,
    #[expect(dead_code, reason = "only its drop is observed")]
    unnamed: Probe,
}

enum End {
    Success,
    Error,
    Panic,
    Never,
}

#[expect(
    clippy::too_many_arguments,
    reason = "one parameter for each way to write one"
)]
#[distributed_lock(key = "ending", ttl = "10s", max_hold = longest, manager = locks)]
async fn ends(
    locks: &LockManager,
    watch: &Watch,
    end: End,
    longest: Duration,
    _: Probe,
    _unused: Probe,
    (first, _): (Probe, Probe),
    Pair { named, .. }: Pair,
    Pair {
        named: ref borrowed,
        ..
    }: Pair,
) -> Result<(), Error> {
    let _local = watch.probe("local");
    tokio::task::yield_now().await;
    drop(first);
    let _ = (&named, borrowed);
    match end {
        End::Success => Ok(()),
        End::Error => locks.lock("").acquire().await.map(drop),
        End::Panic => panic!("the body panics"),
        End::Never => pending().await,
    }
}

const EVERY_PROBE: [&str; 9] = [
    "borrowed.named",
    "borrowed.unnamed",
    "first",
    "local",
    "named",
    "second",
    "unnamed",
    "unused",
    "wild",
];

async fn ended(
    locks: &LockManager,
    watch: &Watch,
    end: End,
    longest: Duration,
) -> Result<(), Error> {
    let pair = |named, unnamed| Pair {
        named: watch.probe(named),
        unnamed: watch.probe(unnamed),
    };
    ends(
        locks,
        watch,
        end,
        longest,
        watch.probe("wild"),
        watch.probe("unused"),
        (watch.probe("first"), watch.probe("second")),
        pair("named", "unnamed"),
        pair("borrowed.named", "borrowed.unnamed"),
    )
    .await
}

#[track_caller]
fn assert_every_probe_was_dropped_under_the_lock(watch: &Watch) {
    let mut names = watch.all_under_the_lock();
    names.sort_unstable();
    assert_eq!(names, EVERY_PROBE);
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_success_drops_everything_before_the_release() {
    let locks = LockManager::in_memory();
    let watch = Watch::new(&locks);
    ended(&locks, &watch, End::Success, LONG)
        .await
        .expect("the lock is free");
    assert_every_probe_was_dropped_under_the_lock(&watch);
    assert!(locks.held().is_empty());
}

#[tokio::test]
async fn an_error_drops_everything_before_the_release() {
    let locks = LockManager::in_memory();
    let watch = Watch::new(&locks);
    let error = ended(&locks, &watch, End::Error, LONG)
        .await
        .expect_err("an empty key is invalid");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_every_probe_was_dropped_under_the_lock(&watch);
}

#[tokio::test]
async fn a_panic_drops_everything_before_the_release() {
    let locks = LockManager::in_memory();
    let watch = Watch::new(&locks);
    let ended = AssertUnwindSafe(ended(&locks, &watch, End::Panic, LONG));
    let caught = CatchUnwind(Box::pin(ended.0)).await;
    assert!(caught.is_err());
    assert_every_probe_was_dropped_under_the_lock(&watch);
}

// A lock at its `max_hold` is not held any more but not yet released, so only the store knows.
#[cfg(feature = "test-util")]
#[tokio::test]
async fn max_hold_drops_everything_before_the_release() {
    let locks = LockManager::in_memory();
    let watch = Watch::of_the_store(&locks);
    let error = ended(&locks, &watch, End::Never, Duration::from_millis(20))
        .await
        .expect_err("it ran too long");
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_every_probe_was_dropped_under_the_lock(&watch);
}

#[test]
fn a_cancelled_call_drops_everything_before_the_release_after_every_number_of_polls() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut ran = 0;
    for polls in 0..12 {
        let locks = LockManager::in_memory();
        let watch = Watch::new(&locks);
        runtime.block_on(async {
            let mut call = Box::pin(ended(&locks, &watch, End::Never, LONG));
            for _ in 0..polls {
                let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                tokio::task::yield_now().await;
            }
            let held = !locks.held().is_empty();
            drop(call);
            if held {
                ran += 1;
                assert_every_probe_was_dropped_under_the_lock(&watch);
            }
            // The key must be free, whether the lock was held or only requested.
            let next = locks.lock("ending").ttl(LONG).wait(LONG).acquire().await;
            assert!(next.is_ok(), "after {polls} polls: {next:?}");
        });
    }
    assert!(ran > 0, "no call ever got as far as its body");
}

#[distributed_lock(key = "order", ttl = "10s", manager = locks)]
async fn in_order(locks: &LockManager, watch: &Watch, _a: Probe, _b: Probe) -> Result<(), Error> {
    let _ = locks.held();
    let _c = watch.probe("c");
    let _d = watch.probe("d");
    Ok(())
}

#[tokio::test]
async fn locals_and_arguments_are_dropped_in_the_order_of_a_plain_function() {
    let locks = LockManager::in_memory();
    let watch = Watch::new(&locks);
    in_order(&locks, &watch, watch.probe("a"), watch.probe("b"))
        .await
        .expect("the lock is free");
    assert_eq!(watch.all_under_the_lock(), ["d", "c", "b", "a"]);
}

/// A type with `Drop` from whose fields a pattern only copies.
struct Ticket<'a> {
    number: u64,
    watch: &'a Watch,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        drop(self.watch.probe("ticket"));
    }
}

#[distributed_lock(key = "ticket:<number>", ttl = "10s", manager = locks)]
async fn taken_apart(
    locks: &LockManager,
    Ticket { number, watch }: Ticket<'_>,
) -> Result<u64, Error> {
    let _local = (watch.probe("local"), locks.held());
    Ok(number)
}

#[tokio::test]
async fn a_value_from_which_a_pattern_only_copies_is_dropped_before_the_release() {
    let locks = LockManager::in_memory();
    let watch = Watch::new(&locks);
    let ticket = Ticket {
        number: 7,
        watch: &watch,
    };
    assert_eq!(taken_apart(&locks, ticket).await.expect("free"), 7);
    assert_eq!(watch.all_under_the_lock(), ["local", "ticket"]);
}

/// Catches a panic of the future, and drops the future before it returns the outcome.
struct CatchUnwind<F>(std::pin::Pin<Box<F>>);

impl<F: Future> Future for CatchUnwind<F> {
    type Output = std::thread::Result<F::Output>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut inner = pin!(&mut self.0);
        match std::panic::catch_unwind(AssertUnwindSafe(|| inner.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}
