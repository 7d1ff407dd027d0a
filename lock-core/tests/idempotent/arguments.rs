//! The arguments, in all their forms.

use std::time::Duration;

use lock_core::{Error, LockKey, LockManager, idempotent};

const LIFE: Duration = Duration::from_secs(60);

struct Order {
    id: u64,
    cents: u64,
    lines: Vec<String>,
}

fn order(id: u64, cents: u64) -> Order {
    Order {
        id,
        cents,
        lines: vec!["tea".to_owned()],
    }
}

fn key_of(order: &Order) -> LockKey {
    LockKey::exact(format!("order:{}", order.id))
}

#[idempotent(
    key = key_of(order),
    ttl = LIFE,
    remember = LIFE * 2,
    fingerprint = "<order.cents>:<order.lines.len()><label>",
    wait = LIFE,
    renew = true,
    max_hold = LIFE,
    on_lost = cancel,
    on_error = |error| Err(error.code().to_owned()),
    manager = locks,
    guard = lock,
    errors = |error: &String| error.starts_with("final"),
)]
async fn everything(locks: &LockManager, order: &Order, label: &str) -> Result<u64, String> {
    assert!(lock.is_valid());
    match label {
        "" => Ok(order.cents),
        label => Err(label.to_owned()),
    }
}

#[tokio::test]
async fn every_argument_works() {
    let locks = LockManager::in_memory();
    let run = async |id, cents, label: &str| everything(&locks, &order(id, cents), label).await;
    assert_eq!(run(1, 5, "").await, Ok(5));
    assert_eq!(run(1, 5, "").await, Ok(5));
    assert_eq!(run(1, 6, "").await, Err("lock_key_reused".to_owned()));
    assert_eq!(run(1, 5, "x").await, Err("lock_key_reused".to_owned()));
    assert_eq!(run(2, 5, "passing").await, Err("passing".to_owned()));
    assert_eq!(run(2, 5, "final").await, Err("final".to_owned()));
    assert_eq!(run(2, 6, "").await, Err("lock_key_reused".to_owned()));
    assert_eq!(run(2, 5, "final").await, Err("final".to_owned()));
}

fn is_final(error: &String) -> bool {
    error == "final"
}

#[idempotent(
    key = "path", ttl = "10s", remember = "1d", fingerprint = none, errors = is_final, on_error = |_| Ok(7), manager = locks,
)]
async fn errors_by_a_path(locks: &LockManager, error: String) -> Result<u8, String> {
    Err(error)
}

#[tokio::test]
async fn the_errors_may_be_named_by_a_function() {
    let locks = LockManager::in_memory();
    let run = async |error: &str| errors_by_a_path(&locks, error.to_owned()).await;
    assert_eq!(run("first").await, Err("first".to_owned()));
    assert_eq!(run("final").await, Err("final".to_owned()));
    assert_eq!(run("late").await, Err("final".to_owned()));
}

#[idempotent(key = "long", ttl = "10s", remember = LONG, manager = locks)]
async fn too_long(locks: &LockManager) -> Result<(), Error> {
    panic!("a result that no store keeps is refused before the body")
}

const LONG: Duration = Duration::from_secs(86_400 * 30);

#[tokio::test]
async fn a_life_that_no_store_keeps_is_invalid_before_the_body_runs() {
    let locks = LockManager::in_memory();
    let error = too_long(&locks).await.expect_err("too long");
    assert!(
        error.is_invalid() && error.to_string().contains("max_ttl"),
        "{error}"
    );
    assert_eq!(error.key(), Some("long"));
}

struct Fails;

impl std::fmt::Display for Fails {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Err(std::fmt::Error)
    }
}

#[idempotent(key = "written", ttl = "10s", remember = "1h", fingerprint = "<value>", manager = locks)]
async fn not_written(locks: &LockManager, value: Fails) -> Result<(), Error> {
    panic!("a call that cannot be compared is refused before the body")
}

#[tokio::test]
async fn a_fingerprint_that_cannot_be_written_is_invalid_before_the_body_runs() {
    let locks = LockManager::in_memory();
    let error = not_written(&locks, Fails).await.expect_err("no Display");
    assert!(
        error.is_invalid() && error.to_string().contains("`<value>`"),
        "{error}"
    );
}

#[idempotent(key = "installed:<id>", ttl = "10s", remember = "1h", crate = lock_core)]
async fn by_the_installed_manager(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[tokio::test]
async fn the_manager_is_the_one_in_scope() {
    let error = by_the_installed_manager(1)
        .await
        .expect_err("none is installed");
    assert!(error.is_invalid());
    let locks = LockManager::in_memory();
    let called = locks.scope(by_the_installed_manager(1)).await;
    assert_eq!(called.expect("free"), 1);
}
