//! A longest hold of zero.
//! Remove it for no limit, or write a longer one.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", max_hold = "30s")]
#[distributed_lock(key = "order:<uid>", ttl = "10s", max_hold = "0s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
