//! A name that does not exist.
//! Name a parameter or a constant.
use lock_core::{Error, distributed_lock};

const LEASE: std::time::Duration = std::time::Duration::from_secs(10);

// instead: #[distributed_lock(key = "order:<uid>", ttl = LEASE)]
#[distributed_lock(key = "order:<uid>", ttl = ttl)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
