//! `true` in place of a duration.
//! Write a duration, or `forever`.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", wait = forever)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", wait = true)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
