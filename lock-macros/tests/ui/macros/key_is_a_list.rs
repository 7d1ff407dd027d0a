//! A list as the value of `key`.
//! Write `keys`.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(keys = ["order:<uid>", "stock"], ttl = "10s")]
#[distributed_lock(key = ["order:<uid>", "stock"], ttl = "10s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
