//! No permits.
//! Write how many owners there may be.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "exports", ttl = "10s", permits = 5)]
#[distributed_lock(key = "exports", ttl = "10s", permits = 0)]
async fn prices() -> Result<u64, Error> {
    Ok(1)
}

fn main() {
    let _ = prices();
}
