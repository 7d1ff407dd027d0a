//! Tests input that is invalid, and the errors for it.

use std::time::Duration;

use lock_core::{Error, ErrorKind, LockKey, LockManager, Wait};
use lock_tests::wait;

use super::{Fixture, long};

async fn invalid(locks: &LockManager, key: impl Into<LockKey>) -> Error {
    let error = locks.lock(key).acquire().await.expect_err("an invalid key");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!((error.http_status(), error.code()), (500, "lock_invalid"));
    error
}

#[track_caller]
fn says(error: &Error, words: &str) {
    assert!(error.to_string().contains(words), "{error}");
}

pub(super) async fn an_empty_key_is_invalid(store: &Fixture) {
    says(&invalid(&store.manager().await, "").await, "empty");
}

pub(super) async fn a_key_of_ten_thousand_bytes_is_invalid_and_names_the_bound(store: &Fixture) {
    says(
        &invalid(&store.manager().await, "k".repeat(10_000)).await,
        "1024",
    );
}

pub(super) async fn a_key_of_the_longest_length_works(store: &Fixture) {
    let locks = store.manager().await;
    let key = "k".repeat(1024);
    let guard = locks.lock(key.as_str()).acquire().await.expect("free");
    assert_eq!(guard.key(), key);
    guard.release().await.expect("held");
    invalid(&locks, "k".repeat(1025)).await;
}

pub(super) async fn a_key_that_looks_like_a_template_is_invalid_unless_exact(store: &Fixture) {
    let locks = store.manager().await;
    for key in ["order:<uid>", "a>b", "<"] {
        says(&invalid(&locks, key).await, "lock_key!");
        let guard = locks
            .lock(LockKey::exact(key))
            .acquire()
            .await
            .expect("an exact key");
        assert_eq!(guard.key(), key);
    }
}

pub(super) async fn a_key_in_the_range_of_the_kits_own_keys_is_invalid(store: &Fixture) {
    let locks = store.manager().await;
    for key in ["!f", "!q:k", "!"] {
        invalid(&locks, key).await;
        invalid(&locks, LockKey::exact(key)).await;
    }
}

pub(super) async fn a_key_may_have_any_characters(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let keys = [
        " ",
        "a b",
        "\r\n",
        "\0",
        "{}",
        "{a",
        "a}b",
        "{a}b{c}",
        "%s%d",
        "*",
        "é\u{1f512}",
        "cooling/x",
    ]
    .into_iter()
    .filter(|key| store.takes(key))
    .collect::<Vec<_>>();
    let mut guards = Vec::new();
    for &key in &keys {
        let guard = locks.lock(key).ttl(long()).acquire().await.expect("free");
        let waiter = tokio::spawn(other.lock(key).wait(Wait::Forever).acquire());
        guards.push((guard, waiter));
    }
    wait::eventually("all are queued", async || store.waiting() == keys.len()).await;
    assert_eq!(store.taken(), keys.len());
    for (guard, waiter) in guards {
        guard.release().await.expect("held");
        let next = waiter.await.expect("no panic").expect("its turn");
        next.release().await.expect("held");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_ttl_out_of_bounds_is_invalid_and_names_the_bound(store: &Fixture) {
    let locks = store.manager().await;
    let years = Duration::from_secs(3 * 365 * 86_400);
    for (ttl, bound) in [
        (Duration::ZERO, "10ms"),
        (Duration::from_micros(500), "10ms"),
        (Duration::from_nanos(9_999_999), "10ms"),
        (years, "24h"),
        (Duration::MAX, "24h"),
    ] {
        let error = locks
            .lock("k")
            .ttl(ttl)
            .acquire()
            .await
            .expect_err("out of bounds");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        says(&error, bound);
        assert_eq!(error.key(), Some("k"));
    }
    assert_eq!(store.taken(), 0);
}

pub(super) async fn the_bounds_of_the_ttl_themselves_work(store: &Fixture) {
    let locks = store.manager().await;
    let longest = Duration::from_secs(24 * 60 * 60);
    let guard = locks
        .lock("long")
        .ttl(longest)
        .acquire()
        .await
        .expect("free");
    assert!(guard.remaining() > longest / 100 * 98);
    let request = locks.lock("short").ttl(Duration::from_millis(10));
    match request.acquire().await {
        Ok(guard) => assert!(guard.remaining() < Duration::from_millis(10)),
        // The answer took longer than the ttl.
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
    }
}

pub(super) async fn endless_waits_and_cooldowns_saturate(store: &Fixture) {
    let locks = store.manager().await;
    let request = locks.lock("k").wait(Duration::MAX).cooldown(Duration::MAX);
    let request = request
        .max_hold(Duration::MAX)
        .acquire_timeout(Duration::MAX);
    let guard = request.acquire().await.expect("free");
    assert!(guard.is_valid());
    guard.cooldown(Duration::MAX);
    guard.release().await.expect("held");
    let day = Duration::from_secs(24 * 60 * 60);
    let error = locks.lock("k").acquire().await.expect_err("cooling");
    let left = error.retry_after().expect("a cooldown has an exact end");
    assert!(left <= day && left > day - wait::PATIENCE, "{left:?}");
    let left = locks.drain(Duration::MAX).await;
    assert_eq!((left.held(), left.releasing()), (0, 0));
}

pub(super) async fn a_max_hold_of_zero_is_invalid(store: &Fixture) {
    let request = store.lock("k").await.max_hold(Duration::ZERO);
    let error = request.run(async {}).await.expect_err("a max_hold of zero");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    says(&error, "max_hold");
}

pub(super) async fn errors_and_managers_show_no_key(store: &Fixture) {
    let locks = store.manager().await;
    let secret = "account:alice@example.com";
    let guard = locks.lock(secret).acquire().await.expect("free");
    let busy = locks.lock(secret).acquire().await.expect_err("held");
    store.delete(secret);
    let shown = format!(
        "{busy} {busy:?} {guard:?} {:?} {locks:?} {:?}",
        guard.handle(),
        locks.held()
    );
    let lost = guard.release().await.expect_err("deleted");
    let request = locks.lock(secret).ttl(Duration::ZERO);
    let shown = format!(
        "{shown} {lost} {lost:?} {request:?} {:?}",
        LockKey::from(secret)
    );
    let invalid = request.acquire().await.expect_err("no ttl");
    let shown = format!("{shown} {invalid} {invalid:?}");
    assert!(!shown.contains("alice"), "{shown}");
}
