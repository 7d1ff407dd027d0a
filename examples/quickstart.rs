//! Shows the kit in twenty lines: connect, install, the attribute, the library.
//!
//! Run it with `cargo run --example quickstart`. With `REDIS_URL=redis://127.0.0.1:6379` in
//! the environment, the locks live in Redis.

use std::time::Duration;

use lock_core::{Error, FencingToken, LockManager, distributed_lock};

#[distributed_lock(key = "order:<uid>", ttl = "10s", guard = lock)]
async fn place_order(uid: u64) -> Result<FencingToken, Error> {
    tokio::time::sleep(Duration::from_millis(200)).await; // the work, during which the keeper renews the lock
    Ok(lock.fencing_token()) // for the database that this order writes to
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(&url).await?;
    locks.install()?;

    // The attribute: two concurrent calls for one user, and one for another user.
    let (first, second, other) = tokio::join!(place_order(42), place_order(42), place_order(7));
    println!("order 42:       placed under fencing token {}", first?);
    println!(
        "order 42 again: {}",
        second.expect_err("the first is under way")
    );
    println!("order 7:        placed under fencing token {}", other?);

    // The library: the same lock by hand. `try_acquire` returns `None` while the lock is held.
    let guard = locks
        .lock("report")
        .ttl(Duration::from_secs(5))
        .acquire()
        .await?;
    println!("report:         held for another {:?}", guard.remaining());
    println!(
        "report again:   free? {}",
        locks.lock("report").try_acquire().await?.is_some()
    );
    guard.release().await?;
    println!(
        "report, later:  free? {}",
        locks.lock("report").try_acquire().await?.is_some()
    );
    Ok(())
}
