//! A word in place of `true` or `false`.
//! Write `true` for a key that clients of other libraries lock as well.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", interop = true)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", interop = legacy)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
