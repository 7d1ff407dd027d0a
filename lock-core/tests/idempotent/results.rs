//! What a call returns, for each thing that it may meet.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_core::middleware::Forgotten;
use lock_core::{Error, LockManager, idempotent};
use serde::{Deserialize, Serialize};
use tracing::Level;

use crate::log::Log;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    number: u64,
    cents: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum ChargeError {
    Declined(u64),
    Timeout,
    Lock(String),
}

impl From<Error> for ChargeError {
    fn from(error: Error) -> Self {
        ChargeError::Lock(error.code().to_owned())
    }
}

/// A shop that counts the runs of its functions.
struct Shop {
    locks: LockManager,
    runs: AtomicU64,
}

impl Shop {
    fn new() -> Shop {
        Shop {
            locks: LockManager::in_memory(),
            runs: AtomicU64::new(0),
        }
    }

    fn run(&self) -> u64 {
        self.runs.fetch_add(1, Ordering::SeqCst) + 1
    }

    #[idempotent(
        key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = "<cents>", manager = self.locks,
    )]
    async fn charge(&self, order: u64, cents: u64) -> Result<Receipt, Error> {
        let number = self.run();
        Ok(Receipt { number, cents })
    }

    #[idempotent(key = "try:<order>", ttl = "10s", remember = "24h", fingerprint = none, manager = self.locks)]
    async fn attempt(&self, order: u64, fails: bool) -> Result<u64, ChargeError> {
        let run = self.run();
        if fails {
            return Err(ChargeError::Declined(run));
        }
        Ok(run)
    }

    #[idempotent(
        key = "final:<order>",
        ttl = "10s",
        remember = "24h",
        fingerprint = none,
        errors = |error| matches!(error, ChargeError::Declined(_)),
        manager = self.locks,
    )]
    async fn decide(&self, order: u64, outcome: ChargeError) -> Result<u64, ChargeError> {
        self.run();
        Err(outcome)
    }

    #[idempotent(key = "large", ttl = "10s", remember = "24h", fingerprint = none, manager = self.locks)]
    async fn large(&self, bytes: usize) -> Result<String, Error> {
        self.run();
        Ok("x".repeat(bytes))
    }

    #[idempotent(key = "odd", ttl = "10s", remember = "24h", manager = self.locks)]
    async fn odd(&self) -> Result<NoJson, Error> {
        self.run();
        Ok(NoJson)
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }
}

/// A value whose `Serialize` fails.
#[derive(Debug, Deserialize)]
struct NoJson;

impl Serialize for NoJson {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no"))
    }
}

#[tokio::test]
async fn a_second_call_returns_the_result_of_the_first_and_does_not_run() {
    let shop = Shop::new();
    let first = shop.charge(42, 1_800).await.expect("free");
    for _ in 0..3 {
        assert_eq!(shop.charge(42, 1_800).await.expect("kept"), first);
    }
    assert_eq!(shop.charge(43, 1_800).await.expect("another key").number, 2);
    assert_eq!(shop.runs(), 2);
}

/// Sixteen digits name each of these numbers, and a parser that rounds twice finds another one.
#[tokio::test]
async fn a_number_is_kept_to_its_last_bit() {
    #[idempotent(key = "rate:<call>", ttl = "10s", remember = "24h", fingerprint = none, manager = locks)]
    async fn rate(locks: &LockManager, call: u64, number: f64) -> Result<f64, Error> {
        Ok(number)
    }
    let locks = LockManager::in_memory();
    for call in 0..200 {
        let number = 937.904_630_5 * (1.0 + call as f64 / 7.0).sqrt();
        let first = rate(&locks, call, number).await.expect("free");
        let kept = rate(&locks, call, 0.0).await.expect("kept");
        assert_eq!((kept.to_bits(), kept), (first.to_bits(), number));
    }
}

#[tokio::test]
async fn another_call_with_the_key_is_reused_and_does_not_run() {
    let shop = Shop::new();
    shop.charge(42, 1_800).await.expect("free");
    let error = shop.charge(42, 9_900).await.expect_err("other cents");
    assert!(error.is_reused());
    assert_eq!(
        (error.http_status(), error.code()),
        (422, "lock_key_reused")
    );
    assert_eq!(error.key(), Some("charge:42"));
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn an_error_is_not_kept_and_the_next_call_runs() {
    let shop = Shop::new();
    for run in 1..=2 {
        let failed = shop.attempt(1, true).await;
        assert_eq!(failed, Err(ChargeError::Declined(run)));
    }
    assert_eq!(shop.attempt(1, false).await, Ok(3));
    assert_eq!(
        shop.attempt(1, true).await,
        Ok(3),
        "kept, and no parameter counts"
    );
}

#[tokio::test]
async fn an_error_that_counts_as_final_is_kept_and_another_is_not() {
    let shop = Shop::new();
    let timeout = shop.decide(1, ChargeError::Timeout).await;
    assert_eq!(timeout, Err(ChargeError::Timeout));
    let declined = || Err(ChargeError::Declined(7));
    assert_eq!(shop.decide(1, ChargeError::Declined(7)).await, declined());
    assert_eq!(shop.decide(1, ChargeError::Timeout).await, declined());
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn a_run_in_flight_is_busy_without_a_wait() {
    let shop = Shop::new();
    let held = shop.locks.lock("charge:42").acquire().await.expect("free");
    let error = shop.charge(42, 1_800).await.expect_err("in flight");
    assert!(error.is_busy() && !error.is_cooling_down());
    held.release().await.expect("held");
    assert_eq!(shop.charge(42, 1_800).await.expect("free").number, 1);
}

#[tokio::test]
async fn a_result_that_is_too_large_is_done_and_the_log_says_so_once() {
    let (log, _guard) = Log::begin(Level::WARN);
    for _ in 0..2 {
        let shop = Shop::new();
        let first = shop.large(2 << 20).await.expect("the first caller gets it");
        assert_eq!(first.len(), 2 << 20);
        let error = shop.large(1).await.expect_err("done");
        assert!(error.is_busy() && error.is_cooling_down());
        assert!(error.to_string().contains("is done"), "{error}");
        assert_eq!((error.code(), error.retry_after()), ("lock_done", None));
        #[cfg(feature = "axum")]
        tells_no_client_to_come_back(error).await;
        assert_eq!(shop.runs(), 1);
    }
    let text = log.text();
    assert_eq!(text.matches("cannot be kept").count(), 1, "{text}");
    assert!(
        text.contains("results::large") && text.contains("larger"),
        "{text}"
    );
}

/// A client that came back after the life of the record would pay again.
#[cfg(feature = "axum")]
async fn tells_no_client_to_come_back(error: Error) {
    use axum::response::IntoResponse as _;
    let response = error.into_response();
    assert_eq!(response.status(), 409);
    assert!(!response.headers().contains_key("retry-after"));
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await;
    let body = String::from_utf8(body.expect("a problem").to_vec()).expect("JSON");
    let says = body.contains("\"lock_done\"") && !body.contains("retry_after_ms");
    assert!(says, "{body}");
}

#[tokio::test]
async fn a_result_that_serde_cannot_write_is_done() {
    let (log, _guard) = Log::begin(Level::WARN);
    let shop = Shop::new();
    shop.odd().await.expect("the first caller gets it");
    let error = shop.odd().await.expect_err("done");
    assert!(error.is_busy() && error.is_cooling_down());
    let text = log.text();
    assert!(
        text.contains("results::odd") && text.contains("its `Serialize` fails"),
        "{text}"
    );
    assert_eq!(shop.runs(), 1);
}

/// serde reads no `u128` of a tagged enum.
#[cfg(debug_assertions)]
#[tokio::test]
async fn a_result_that_cannot_be_read_back_is_reported_by_its_first_call() {
    #[derive(Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum Total {
        Cents { sum: u128 },
    }
    #[idempotent(key = "total", ttl = "10s", remember = "24h", manager = locks)]
    async fn total(locks: &LockManager) -> Result<Total, Error> {
        Ok(Total::Cents { sum: 1 << 70 })
    }
    let (log, _guard) = Log::begin(Level::WARN);
    let locks = LockManager::in_memory();
    let Total::Cents { sum } = total(&locks).await.expect("the first caller gets it");
    assert_eq!(sum, 1 << 70);
    assert!(log.text().contains("cannot be read back"), "{}", log.text());
    let error = total(&locks).await.err().expect("no total");
    assert!(error.is_unreadable(), "{error}");
    assert!(
        error.to_string().contains("if the type has changed"),
        "{error}"
    );
}

#[tokio::test]
async fn a_forgotten_result_runs_again() {
    let shop = Shop::new();
    shop.charge(42, 1_800).await.expect("free");
    let forgotten = shop.locks.forget("charge:42").await;
    assert_eq!(forgotten.expect("no fault"), Forgotten::Yes);
    assert_eq!(shop.charge(42, 9_900).await.expect("free").number, 2);
}

#[cfg(feature = "test-util")]
#[tokio::test]
async fn a_result_lives_as_long_as_it_is_remembered() {
    let clock = lock_core::test_util::ManualClock::new();
    let locks = LockManager::builder("memory:").clock(clock.clone());
    let shop = Shop {
        locks: locks.connect().await.expect("a store"),
        runs: AtomicU64::new(0),
    };
    let day = Duration::from_secs(86_400);
    shop.charge(42, 1_800).await.expect("free");
    clock.advance(day - Duration::from_secs(1));
    assert_eq!(shop.charge(42, 1_800).await.expect("kept").number, 1);
    clock.advance(Duration::from_secs(2));
    assert_eq!(shop.charge(42, 1_800).await.expect("free").number, 2);
}

#[cfg(feature = "test-util")]
#[tokio::test]
async fn a_store_that_does_not_answer_is_unavailable_and_the_body_does_not_run() {
    let shop = Shop::new();
    let store = shop.locks.test_store().expect("an embedded store");
    store.fail(lock_core::ErrorKind::Unavailable);
    let error = shop.charge(42, 1_800).await.expect_err("down");
    assert!(error.is_unavailable());
    assert_eq!(shop.runs(), 0);
}
