//! Two units.
//! Write one number with the smaller unit.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "90s")]
#[distributed_lock(key = "order:<uid>", ttl = "1m30s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
