//! No quotes, and a unit written out.
//! Write the duration in quotes, with the short unit.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10m")]
#[distributed_lock(key = "order:<uid>", ttl = 10min)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
