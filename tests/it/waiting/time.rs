//! Tests how long a wait is, to the millisecond.
//!
//! The manager's clock stands still until the test moves it. So a needless sleep never ends, and the
//! speed of the machine does not matter.

use lock_core::test_util::ManualClock;
use lock_core::{Error, ErrorKind, LockGuard, LockManager, LockRequest, Wait};
use lock_tests::{RedisServer, needs, wait};

use super::{
    Waiter, all_is_answered, has_no_answer, its_turn, long, millis, on, others_run, outcome,
    queued, refused, served, waits,
};

const WAITS: [u64; 3] = [0, 50, 500];

/// A manager with waiters for a key that they do not get.
struct Watched {
    clock: ManualClock,
    locks: LockManager,
    /// The owner of the marker's key, so that no waiter gets that key either.
    _marker: LockGuard,
}

impl Watched {
    async fn new(url: &str) -> Watched {
        let clock = ManualClock::new();
        let locks = on(&clock, url).await;
        let marker = locks
            .lock("marker")
            .ttl(long())
            .wait(long())
            .acquire()
            .await;
        Watched {
            clock,
            locks,
            _marker: marker.expect("free"),
        }
    }

    fn starts(&self, request: LockRequest, span: u64) -> Waiter {
        tokio::spawn(request.ttl(long()).wait(millis(span)).acquire())
    }

    /// Moves the clock, and returns when the tasks that it wakes have run.
    async fn passes(&self, span: u64) {
        // The marker's wait ends at that very moment, so every earlier end has been handled by then.
        let marker = self.starts(self.locks.lock("marker"), span);
        others_run().await;
        self.clock.advance(millis(span));
        assert_eq!(refused(marker).await, ErrorKind::Busy);
        others_run().await;
    }

    /// Checks that the wait for `k` ends after `span`, not before, and waits for nothing more.
    ///
    /// When `waits` returns, the wait has gone as far as it can without the clock.
    async fn ends(&self, span: u64, waits: impl AsyncFnOnce()) -> Error {
        let waiter = self.starts(self.locks.lock("k"), span);
        if span > 0 {
            waits().await;
            self.passes(span - 1).await;
            assert!(!waiter.is_finished(), "a moment is left of {span} ms");
            self.clock.advance(millis(1));
        }
        outcome(waiter).await.expect_err("held")
    }
}

#[tokio::test]
async fn a_free_lock_is_granted_before_any_time_has_passed_for_every_wait() {
    needs!(redis);
    let server = RedisServer::start();
    for url in [&*server.url(), "memory:"] {
        let watched = Watched::new(url).await;
        for wait in [Wait::None, Wait::For(millis(500)), Wait::Forever] {
            let request = watched.locks.lock("k").ttl(long()).wait(wait);
            let guard = outcome(tokio::spawn(request.acquire())).await;
            let released = guard.expect("free").release();
            released.await.expect("held");
        }
    }
}

#[tokio::test]
async fn a_wait_for_another_process_ends_in_time() {
    needs!(redis);
    let (server, owner) = served().await;
    let _guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let watched = Watched::new(&server.url()).await;
    for span in WAITS {
        let error = watched
            .ends(span, async || queued(&server, "k", 1).await)
            .await;
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.retry_after() <= Some(long()));
        queued(&server, "k", 0).await;
    }
}

#[tokio::test]
async fn a_wait_for_a_task_of_the_same_process_ends_in_time() {
    for span in WAITS {
        let watched = Watched::new("memory:").await;
        let request = watched.locks.lock("k").ttl(long());
        let _guard = request.acquire().await.expect("free");
        let error = watched.ends(span, others_run).await;
        assert_eq!(error.kind(), ErrorKind::Busy);
    }
}

#[tokio::test]
async fn a_wait_for_a_foreign_client_without_pushes_ends_in_time() {
    needs!(redis);
    let server = RedisServer::start();
    for end in [
        &["SET", "lockkit:k", "stranger"][..],
        &["SET", "lockkit:k", "stranger", "PX", "60000"],
    ] {
        server.cli(end);
        let watched = Watched::new(&server.url()).await;
        for span in WAITS {
            // The waiter asks 20 times a second, which makes the wait neither longer nor shorter.
            let error = watched
                .ends(span, async || queued(&server, "k", 1).await)
                .await;
            assert_eq!(error.kind(), ErrorKind::Busy);
            queued(&server, "k", 0).await;
        }
    }
}

#[tokio::test]
async fn a_wait_for_a_key_that_cools_down_ends_in_time() {
    needs!(redis);
    let (server, owner) = served().await;
    let request = owner.lock("k").ttl(long()).cooldown(long());
    let guard = request.acquire().await.expect("free");
    guard.release().await.expect("held");
    let watched = Watched::new(&server.url()).await;
    for span in WAITS {
        let error = watched
            .ends(span, async || queued(&server, "k", 1).await)
            .await;
        assert_eq!(error.kind(), ErrorKind::Busy);
        queued(&server, "k", 0).await;
    }
}

#[tokio::test]
async fn a_wait_in_the_queue_of_a_server_that_hangs_ends_one_request_later() {
    needs!(redis);
    let (server, owner) = served().await;
    let _guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let watched = Watched::new(&server.url()).await;
    for span in [50, 500] {
        let waiter = watched.starts(watched.locks.lock("k"), span);
        queued(&server, "k", 1).await;
        server.stop();
        watched.passes(span - 1).await;
        assert!(!waiter.is_finished(), "a moment is left");
        watched.clock.advance(millis(1));
        others_run().await;
        assert!(!waiter.is_finished(), "the last request is not answered");
        has_no_answer(&watched.clock, &waiter).await;
        // The server has refused the lock before it hung, so the state of the key is unknown now.
        assert_eq!(refused(waiter).await, ErrorKind::Unavailable);
        server.cont();
        queued(&server, "k", 0).await;
    }
}

/// A value that an owner of this kit writes. Its waiters rely on a push.
const OF_A_DEAD_OWNER: &str = "00000000000000aa/000000000000000000000000000000bb";

/// The owner is gone, so no push tells the end of its key.
#[tokio::test]
async fn a_key_that_became_free_without_a_push_is_granted_at_the_end_of_the_wait() {
    needs!(redis);
    let server = RedisServer::start();
    server.cli(&["SET", "lockkit:k", OF_A_DEAD_OWNER, "PX", "60000"]);
    let watched = Watched::new(&server.url()).await;
    let waiter = watched.starts(watched.locks.lock("k"), 500);
    queued(&server, "k", 1).await;
    server.cli(&["DEL", "lockkit:k"]);
    watched.passes(499).await;
    assert!(!waiter.is_finished(), "a moment is left");
    watched.clock.advance(millis(1));
    drop(outcome(waiter).await.expect("free for half a second"));
}

#[tokio::test]
async fn a_wait_that_ends_behind_another_of_its_process_makes_that_one_ask() {
    needs!(redis);
    let server = RedisServer::start();
    server.cli(&["SET", "lockkit:k", OF_A_DEAD_OWNER, "PX", "60000"]);
    let watched = Watched::new(&server.url()).await;
    let first = watched.starts(watched.locks.lock("k"), 60_000);
    queued(&server, "k", 1).await;
    let second = watched.starts(watched.locks.lock("k"), 500);
    others_run().await;
    server.cli(&["DEL", "lockkit:k"]);
    watched.clock.advance(millis(500));
    let guard = outcome(first)
        .await
        .expect("the lock is free for the first waiter");
    assert_eq!(refused(second).await, ErrorKind::Busy);
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_foreign_lock_is_polled_as_often_after_a_long_wait_as_at_first() {
    needs!(redis);
    let server = RedisServer::start();
    server.cli(&["SET", "lockkit:k", "stranger"]);
    let clock = ManualClock::new();
    let locks = on(&clock, &server.url()).await;
    let waiter = waits(&server, &locks, "k", 1).await;
    let scripts = || server.commandstats().get("evalsha").copied();
    // The loop covers three seconds, with 25 to 75 ms from one request to the next.
    for _ in 0..40 {
        all_is_answered(&locks).await;
        others_run().await;
        let before = scripts();
        clock.advance(millis(75));
        wait::eventually("the waiter asks", async || scripts() > before).await;
    }
    all_is_answered(&locks).await;
    others_run().await;
    server.cli(&["DEL", "lockkit:k"]);
    clock.advance(millis(75));
    drop(its_turn(waiter).await);
}

/// Each request has its time, and so has the last one. The wait may be longer by that time.
#[tokio::test]
async fn a_wait_for_a_store_that_hangs_is_longer_by_one_request_at_most() {
    for (span, asked_for) in [(50, 500), (500, 200), (500, 600)] {
        let watched = Watched::new("memory:").await;
        watched.locks.test_store().expect("embedded").hang();
        let request = watched.locks.lock("k").acquire_timeout(millis(asked_for));
        let waiter = watched.starts(request, span);
        others_run().await;
        let mut passed = 0;
        while !waiter.is_finished() {
            // A due action may be handled one step later, at each of a few requests.
            assert!(passed < span + asked_for + 10, "{passed} ms of {span} ms");
            watched.passes(1).await;
            passed += 1;
        }
        assert!(passed >= span.min(asked_for), "{passed} ms of {span} ms");
        assert_eq!(refused(waiter).await, ErrorKind::Unavailable);
    }
}

#[tokio::test]
async fn a_wait_for_a_store_that_refuses_service_ends_in_time_or_after_a_second() {
    for (span, after) in [(0, 0), (50, 50), (500, 500), (60_000, 1_000)] {
        let watched = Watched::new("memory:").await;
        let store = watched.locks.test_store().expect("embedded");
        store.fail(ErrorKind::Unavailable);
        let waiter = watched.starts(watched.locks.lock("k"), span);
        others_run().await;
        if after > 0 {
            watched.passes(after - 1).await;
            assert!(!waiter.is_finished(), "a moment is left");
            // The second is over at the first request after it, and there is a request every 250 ms.
            watched
                .clock
                .advance(millis(if span > after { 250 } else { 1 }));
        }
        assert_eq!(refused(waiter).await, ErrorKind::Unavailable);
    }
}

#[tokio::test]
async fn a_wait_that_ends_in_an_outage_is_unavailable_and_one_that_ends_after_it_is_busy() {
    for recovers in [false, true] {
        let watched = Watched::new("memory:").await;
        let store = watched.locks.test_store().expect("embedded");
        store.seize("k", millis(200));
        let waiter = watched.starts(watched.locks.lock("k"), 900);
        others_run().await;
        // The waiter asks when the lease is over, and gets no answer.
        store.fail(ErrorKind::Unavailable);
        watched.passes(300).await;
        if recovers {
            store.seize("k", long());
            store.recover();
        }
        watched.passes(300).await;
        watched.clock.advance(millis(300));
        let kind = refused(waiter).await;
        assert_eq!(kind == ErrorKind::Busy, recovers, "{kind:?}");
    }
}

/// Fifty waiters are queued with the same wait as the first, and all end at once.
#[tokio::test]
async fn a_wait_is_counted_from_its_beginning_and_not_from_each_place_in_the_queue() {
    needs!(redis);
    let (server, owner) = served().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let watched = Watched::new(&server.url()).await;
    let waiters: Vec<_> = (0..50)
        .map(|_| watched.starts(watched.locks.lock("k"), 500))
        .collect();
    queued(&server, "k", 1).await;
    watched.clock.advance(millis(500));
    for waiter in waiters {
        assert_eq!(refused(waiter).await, ErrorKind::Busy);
    }
    queued(&server, "k", 0).await;
    guard.release().await.expect("held");
    assert_eq!(server.get("lockkit:k"), None);
}
