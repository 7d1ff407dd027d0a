//! A word in place of `true` or `false`.
//! Write `true`, or remove it.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", renew = true)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", renew = auto)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
