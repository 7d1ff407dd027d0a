//! Another word for `forever`.
//! Write `forever`.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", wait = forever)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", wait = infinite)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
