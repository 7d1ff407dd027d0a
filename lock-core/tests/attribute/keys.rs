//! The key that a call locks.

use std::{
    cell::Cell,
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

use lock_core::{Error, ErrorKind, LockKey, LockManager, distributed_lock, lock_key};

#[derive(Clone)]
struct Line {
    sku: String,
    parts: Vec<u64>,
}

impl Line {
    fn first(&self) -> u64 {
        self.parts[0]
    }
}

fn line() -> Line {
    Line {
        sku: "A1".into(),
        parts: vec![7, 8],
    }
}

fn doubled(n: &u64) -> u64 {
    n * 2
}

const REGION: &str = "eu";

#[distributed_lock(
    key = "order:<uid>:<line.sku>:<line.parts[1]>:<line.first()>:<doubled(&uid)>:<uid % 4 + 1>:<REGION>:<\"x\">",
    ttl = "10s",
    guard = lock
)]
async fn every_kind_of_value(uid: u64, line: Line) -> Result<String, Error> {
    drop(line);
    Ok(lock.key().to_owned())
}

#[tokio::test]
async fn a_template_reads_parameters_fields_indexes_calls_and_arithmetic() {
    let locks = LockManager::in_memory();
    let key = locks
        .scope(every_kind_of_value(21, line()))
        .await
        .expect("the lock is free");
    assert_eq!(key, "order:21:A1:8:7:42:2:eu:x");
}

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
async fn nested(uid: u64, other: u64) -> Result<u64, Error> {
    if uid == other {
        return Ok(0);
    }
    Box::pin(nested(other, other)).await.map(|n| n + 1)
}

#[tokio::test]
async fn different_arguments_take_different_keys_on_the_second_call_too() {
    let locks = LockManager::in_memory();
    for _ in 0..2 {
        let done = locks.scope(nested(1, 2)).await;
        assert_eq!(done.expect("the two keys are independent"), 1);
    }
}

#[distributed_lock(key = "order:<uid>", ttl = "10s", guard = lock)]
async fn moved(uid: String) -> Result<(String, String), Error> {
    let moved = uid;
    Ok((lock.key().to_owned(), moved))
}

#[tokio::test]
async fn the_body_may_move_an_argument_that_the_key_reads() {
    let locks = LockManager::in_memory();
    let (key, moved) = locks
        .scope(moved("ada".into()))
        .await
        .expect("the lock is free");
    assert_eq!((key.as_str(), moved.as_str()), ("order:ada", "ada"));
}

struct Counted<'a>(&'a Cell<u32>);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.set(self.0.get() + 1);
        write!(f, "once")
    }
}

#[distributed_lock(key = "order:<counted>", ttl = "10s")]
async fn counts(counted: Counted<'_>) -> Result<u32, Error> {
    Ok(counted.0.get())
}

#[tokio::test]
async fn a_key_is_evaluated_once_and_before_the_body() {
    let times = Cell::new(0);
    let locks = LockManager::in_memory();
    let seen_by_body = locks
        .scope(counts(Counted(&times)))
        .await
        .expect("the lock is free");
    assert_eq!((seen_by_body, times.get()), (1, 1));
}

static ASKED: AtomicUsize = AtomicUsize::new(0);

fn key_of(line: &Line) -> String {
    ASKED.fetch_add(1, Ordering::Relaxed);
    format!("sku:{}", line.sku)
}

#[distributed_lock(key = key_of(&line), ttl = "10s", guard = lock)]
async fn by_expression(line: Line) -> Result<String, Error> {
    drop(line);
    Ok(lock.key().to_owned())
}

#[tokio::test]
async fn an_expression_is_used_as_the_key_unchanged() {
    let locks = LockManager::in_memory();
    assert_eq!(
        locks
            .scope(by_expression(line()))
            .await
            .expect("the lock is free"),
        "sku:A1"
    );
    assert_eq!(ASKED.load(Ordering::Relaxed), 1);
}

#[distributed_lock(key = lock_key!("order:<uid>"), ttl = "10s", guard = lock)]
async fn by_lock_key(uid: u64) -> Result<String, Error> {
    Ok(lock.key().to_owned())
}

#[tokio::test]
async fn lock_key_makes_the_same_key_as_the_attribute() {
    let uid = "a b";
    let key: LockKey = lock_key!("order:<uid>:<<x>>");
    let shown = key.as_str().expect("the key is valid");
    assert_eq!(shown, "order:a%20b:<x>");
    let locks = LockManager::in_memory();
    assert_eq!(
        locks.scope(by_lock_key(3)).await.expect("the lock is free"),
        "order:3"
    );
}

#[distributed_lock(key = "pair:<a>:<b>", ttl = "10s", guard = lock)]
async fn pair(a: &str, b: &str) -> Result<String, Error> {
    Ok(lock.key().to_owned())
}

#[tokio::test]
async fn values_with_separators_make_different_keys() {
    let locks = LockManager::in_memory();
    let one = locks
        .scope(pair("x:y", "z"))
        .await
        .expect("the lock is free");
    let other = locks
        .scope(pair("x", "y:z"))
        .await
        .expect("the lock is free");
    assert_ne!(one, other);
}

#[tokio::test]
async fn an_empty_value_is_invalid_and_the_body_does_not_run() {
    let locks = LockManager::in_memory();
    let error = locks
        .scope(pair("x", ""))
        .await
        .expect_err("an empty value is invalid");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[distributed_lock(keys = ["account:<to>", "account:<from>", LockKey::exact(audit)], ttl = "10s", wait = "2s", guard = lock)]
async fn transfer(from: u64, to: u64, audit: &str) -> Result<Vec<String>, Error> {
    Ok(lock.keys().map(str::to_owned).collect())
}

#[tokio::test]
async fn a_list_locks_all_its_keys_in_their_order_and_each_once() {
    let locks = LockManager::in_memory();
    let keys = locks.scope(transfer(7, 3, "audit")).await.expect("free");
    assert_eq!(keys, ["account:3", "account:7", "audit"]);
    let keys = locks
        .scope(transfer(3, 3, "account:3"))
        .await
        .expect("free");
    assert_eq!(keys, ["account:3"]);
    let taken = locks.lock("account:7").acquire().await.expect("free");
    let refused = locks.scope(transfer_at_once(7, 3)).await;
    assert_eq!(refused.expect_err("taken").key(), Some("account:7"));
    taken.release().await.expect("held");
}

#[distributed_lock(keys = ["account:<from>", "account:<to>"], ttl = "10s")]
async fn transfer_at_once(from: u64, to: u64) -> Result<(), Error> {
    Ok(())
}

struct Bank {
    locks: LockManager,
}

impl Bank {
    #[distributed_lock(keys = ["account:<from>", "account:<to>"], ttl = "10s", manager = self.locks, guard = lock)]
    async fn transfer(&self, from: u64, to: u64) -> Result<usize, Error> {
        Ok(lock.keys().count())
    }
}

#[tokio::test]
async fn a_list_is_locked_by_the_manager_that_is_named() {
    let bank = Bank {
        locks: LockManager::in_memory(),
    };
    assert_eq!(bank.transfer(1, 2).await.expect("free"), 2);
}
