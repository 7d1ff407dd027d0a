//! Results that another version of the function has left, and bytes that are no result.

use std::time::Duration;

use lock_core::{Error, ErrorKind, LockManager, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    number: u32,
}

/// The receipt of a later version.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Grown {
    number: u32,
    #[serde(default)]
    note: String,
}

/// The receipt of a later version that cannot read the earlier one.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Renamed {
    count: u32,
}

#[idempotent(key = "receipt", ttl = "10s", remember = "24h", manager = locks)]
async fn first(locks: &LockManager) -> Result<Receipt, Error> {
    Ok(Receipt { number: 7 })
}

#[idempotent(key = "receipt", ttl = "10s", remember = "24h", manager = locks)]
async fn moved_and_grown(locks: &LockManager) -> Result<Grown, Error> {
    panic!("the effect is done")
}

#[idempotent(key = "receipt", ttl = "10s", remember = "24h", manager = locks)]
async fn renamed(locks: &LockManager) -> Result<Renamed, Error> {
    panic!("the effect is done")
}

#[idempotent(key = "receipt", ttl = "10s", remember = "24h", fingerprint = "<cents>", manager = locks)]
async fn compared(locks: &LockManager, cents: u64) -> Result<Receipt, Error> {
    panic!("the effect of {cents} is done")
}

#[idempotent(key = "final", ttl = "10s", remember = "24h", errors = |_| true, on_error = |_| Err(0), manager = locks)]
async fn fails(locks: &LockManager) -> Result<(), u32> {
    Err(7)
}

#[idempotent(key = "final", ttl = "10s", remember = "24h", manager = locks)]
async fn without_errors(locks: &LockManager) -> Result<(), Error> {
    panic!("the effect is done")
}

/// Leaves other bytes in the key.
async fn leave(locks: &LockManager, key: &str, bytes: &[u8]) {
    locks.forget(key).await.expect("no fault");
    let guard = locks.lock(key).acquire().await.expect("free");
    let day = Duration::from_secs(86_400);
    guard.remember(bytes, day).expect("in bounds");
    guard.release().await.expect("held");
}

async fn record(locks: &LockManager, key: &str) -> Vec<u8> {
    let refused = locks.lock(key).acquire().await.expect_err("kept");
    refused.record().expect("a record").to_vec()
}

#[track_caller]
fn unreadable<T: std::fmt::Debug>(called: Result<T, Error>, says: &str) {
    let error = called.expect_err("unreadable");
    assert_eq!(error.kind(), ErrorKind::Unreadable, "{error}");
    assert_eq!(
        (error.http_status(), error.code()),
        (500, "lock_unreadable")
    );
    assert!(error.to_string().contains(says), "{error}");
}

#[tokio::test]
async fn a_function_that_is_moved_and_whose_type_has_grown_finds_its_result() {
    let locks = LockManager::in_memory();
    first(&locks).await.expect("free");
    let grown = moved_and_grown(&locks).await.expect("kept");
    assert_eq!((grown.number, grown.note.as_str()), (7, ""));
}

#[tokio::test]
async fn a_result_that_does_not_fit_the_type_is_unreadable_and_never_runs_again() {
    let locks = LockManager::in_memory();
    first(&locks).await.expect("free");
    for _ in 0..2 {
        unreadable(renamed(&locks).await, "does not fit the return type");
    }
}

#[tokio::test]
async fn a_result_without_a_fingerprint_matches_every_call_and_the_other_way_round() {
    let locks = LockManager::in_memory();
    first(&locks).await.expect("free");
    assert_eq!(compared(&locks, 5).await.expect("kept").number, 7);
    let mut with_fingerprint = record(&locks, "receipt").await;
    // The fingerprint of another call, and then the checksum over it.
    with_fingerprint[2] = 1;
    let end = with_fingerprint.len() - 8;
    with_fingerprint.truncate(end);
    let sum = <sha2::Sha256 as sha2::Digest>::digest(&with_fingerprint);
    with_fingerprint.extend_from_slice(&sum[..8]);
    leave(&locks, "receipt", &with_fingerprint).await;
    assert_eq!(first(&locks).await.expect("kept").number, 7);
    assert!(compared(&locks, 5).await.expect_err("other").is_reused());
}

#[tokio::test]
async fn damaged_newer_and_foreign_bytes_are_unreadable_and_never_run() {
    let locks = LockManager::in_memory();
    first(&locks).await.expect("free");
    let good = record(&locks, "receipt").await;
    let newer = [&[3], &good[1..]].concat();
    let cut = &good[..good.len() - 1];
    let mut flipped = good.clone();
    flipped[20] ^= 1;
    for (bytes, says) in [
        (&newer[..], "a newer version"),
        (cut, "damaged"),
        (&flipped, "damaged"),
        (b"receipt 7", "no result of an `#[idempotent]` function"),
        // The mark of a layer's cooldown.
        (&[0], "no result of an `#[idempotent]` function"),
    ] {
        leave(&locks, "receipt", bytes).await;
        unreadable(moved_and_grown(&locks).await, says);
    }
    leave(&locks, "receipt", &good).await;
    assert_eq!(moved_and_grown(&locks).await.expect("kept").number, 7);
}

#[tokio::test]
async fn an_error_that_was_kept_is_unreadable_without_the_argument_errors() {
    let locks = LockManager::in_memory();
    assert_eq!(fails(&locks).await, Err(7));
    assert_eq!(fails(&locks).await, Err(7));
    unreadable(without_errors(&locks).await, "`errors`");
}

/// A plain cooldown is no record.
#[tokio::test]
async fn a_key_that_cools_down_is_busy() {
    let locks = LockManager::in_memory();
    let day = Duration::from_secs(86_400);
    let cooling = locks.lock("receipt").cooldown(day).run(async {});
    cooling.await.expect("free");
    let error = first(&locks).await.expect_err("cooling down");
    assert!(error.is_busy() && error.is_cooling_down());
}
