//! A number that is too large.
//! A ttl is at most `"24h"`.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "24h")]
#[distributed_lock(key = "order:<uid>", ttl = "99999999999999999999s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
