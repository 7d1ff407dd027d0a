//! A typo in the manager's name.
//! Use the name that exists.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", manager = locks)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", manager = lock)]
async fn place_order(uid: u64, locks: lock_core::LockManager) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1, lock_core::LockManager::in_memory());
}
