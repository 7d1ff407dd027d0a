//! Calls inside of a run, and inside of another lock of the key.

use lock_core::{Error, LockManager, distributed_lock, idempotent};

#[idempotent(key = "account:<id>", ttl = "10s", remember = "24h", fingerprint = none, wait = forever, manager = locks)]
async fn settle(locks: &LockManager, id: u64, depth: u64) -> Result<u64, Error> {
    if depth > 0 {
        return Ok(depth);
    }
    book(locks, id).await?;
    // With a wait without an end, the call would never return.
    let inside = Box::pin(settle(locks, id, depth + 1)).await;
    let refused = inside.expect_err("inside");
    assert!(
        refused.is_invalid() && refused.to_string().contains("its own result"),
        "{refused}"
    );
    Ok(id + another(locks, id + 1).await?)
}

#[distributed_lock(key = "account:<id>", ttl = "10s", wait = forever, manager = locks)]
async fn book(locks: &LockManager, id: u64) -> Result<(), Error> {
    Ok(())
}

#[idempotent(key = "account:<id>", ttl = "10s", remember = "24h", manager = locks)]
async fn another(locks: &LockManager, id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[tokio::test]
async fn a_call_inside_its_own_run_is_invalid_at_once_and_a_lock_of_the_key_is_entered() {
    let locks = LockManager::in_memory();
    assert_eq!(settle(&locks, 7, 0).await.expect("free"), 15);
    assert_eq!(settle(&locks, 7, 0).await.expect("kept"), 15);
    assert_eq!(another(&locks, 8).await.expect("kept"), 8);
}

#[tokio::test]
async fn a_call_under_another_lock_of_its_key_is_invalid_and_leaves_no_result() {
    let locks = LockManager::in_memory();
    let inside = locks.lock("account:7").run(another(&locks, 7)).await;
    let refused = inside.expect("free").expect_err("inside");
    assert!(refused.is_invalid(), "{refused}");
    let free = locks.lock("account:7").try_acquire().await;
    assert!(free.expect("no fault").is_some());
}
