//! A guard named `self`.
//! Give it another name.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", guard = lock)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", guard = self)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
