//! A mode and a number of permits.
//! Keep one of them.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "catalogue", ttl = "10s", permits = 5)]
#[distributed_lock(key = "catalogue", ttl = "10s", mode = read, permits = 5)]
async fn prices() -> Result<u64, Error> {
    Ok(1)
}

fn main() {
    let _ = prices();
}
