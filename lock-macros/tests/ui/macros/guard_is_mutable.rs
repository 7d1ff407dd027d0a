//! A guard with `mut`.
//! Write only the name, because all methods take `&self`.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", guard = lock)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", guard = mut lock)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    let _ = lock.is_valid();
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
