//! A constant without a unit.
//! Make it a `Duration`.
use lock_core::{Error, distributed_lock};

const SECONDS: u64 = 10;

// instead: #[distributed_lock(key = "order:<uid>", ttl = std::time::Duration::from_secs(SECONDS))]
#[distributed_lock(key = "order:<uid>", ttl = SECONDS)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
