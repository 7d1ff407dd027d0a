//! The guard is released in the body.
//! Return from the body, which releases the lock.
use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "user", ttl = "10s", guard = lock)]
async fn rename(uid: u64) -> Result<u64, Error> {
    // instead:
    lock.release().await?;
    Ok(uid)
}

fn main() {
    let _ = rename(1);
}
