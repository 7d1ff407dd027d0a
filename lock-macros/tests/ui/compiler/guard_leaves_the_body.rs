//! The guard in a task that outlives the body.
//! Clone it, because the clone can outlive the body.
use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "user", ttl = "10s", guard = lock)]
async fn rename(uid: u64) -> Result<u64, Error> {
    // instead: let lock = lock.clone();
    // instead: tokio::spawn(async move { lock.is_valid() });
    tokio::spawn(async move { lock.is_valid() });
    Ok(uid)
}

fn main() {
    let _ = rename(1);
}
