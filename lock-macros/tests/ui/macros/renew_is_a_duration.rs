//! How often to renew.
//! It is chosen: every third of the ttl. Leave it out, or write `false` for never.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s")]
#[distributed_lock(key = "order:<uid>", ttl = "10s", renew = "3s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
