//! A renewal interval.
//! Remove it, because the interval is always a third of the ttl; `false` turns renewal off.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s")]
#[distributed_lock(key = "order:<uid>", ttl = "10s", renew = "3s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
