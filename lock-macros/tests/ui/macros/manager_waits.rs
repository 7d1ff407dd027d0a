//! An `.await` in `manager`.
//! Let the caller make the manager.
use lock_core::{Error, distributed_lock};

async fn connect() -> lock_core::LockManager {
    lock_core::LockManager::in_memory()
}

// instead: #[distributed_lock(key = "order", ttl = "10s", manager = locks)]
#[distributed_lock(key = "order", ttl = "10s", manager = connect().await)]
async fn place_order(locks: lock_core::LockManager) -> Result<u64, Error> {
    drop(locks);
    Ok(1)
}

fn main() {
    let _ = (place_order(lock_core::LockManager::in_memory()), connect());
}
