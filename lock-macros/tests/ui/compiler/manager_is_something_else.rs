//! A manager of another type.
//! Name a `LockManager`.
use lock_core::{Error, distributed_lock};

static LOCKS: std::sync::LazyLock<lock_core::LockManager> =
    std::sync::LazyLock::new(lock_core::LockManager::in_memory);

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", manager = *LOCKS)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", manager = uid)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = (place_order(1), &*LOCKS);
}
