//! A manager in quotes.
//! Write the expression.
use lock_core::{Error, LockManager, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", manager = locks)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", manager = "locks")]
async fn place_order(uid: u64, locks: LockManager) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1, LockManager::in_memory());
}
