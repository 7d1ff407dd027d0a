//! The guard under another name.
//! Use the name in `guard`.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", guard = held)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", guard = lock)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    let _ = held.remaining();
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
