//! A typo in a constant's name.
//! Use the name that exists.
use lock_core::{Error, distributed_lock};

const REGION: &str = "eu";

// instead: #[distributed_lock(key = "<REGION>:<uid>", ttl = "10s")]
#[distributed_lock(key = "<REGIO>:<uid>", ttl = "10s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = (place_order(1), REGION);
}
