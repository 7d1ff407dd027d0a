//! An unknown unit.
//! Write `ms`, `s`, `m` or `h`.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10ms")]
#[distributed_lock(key = "order:<uid>", ttl = "10us")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
