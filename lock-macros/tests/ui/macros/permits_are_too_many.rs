//! More permits than a key has.
//! Write 10000 or fewer.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "exports", ttl = "10s", permits = 10_000)]
#[distributed_lock(key = "exports", ttl = "10s", permits = 10_001)]
async fn prices() -> Result<u64, Error> {
    Ok(1)
}

fn main() {
    let _ = prices();
}
