//! The attribute on a `use`.
//! Put it on an async function.
use lock_core::distributed_lock;

// instead:
#[distributed_lock(key = "shop", ttl = "10s")]
use std::time::Duration;

// instead: #[distributed_lock(key = "shop", ttl = "10s")]
// instead: async fn open() -> Result<(), lock_core::Error> {
async fn open() -> Result<(), lock_core::Error> {
    Ok(())
}

fn main() {
    let _ = Duration::ZERO;
    let _ = open();
}
