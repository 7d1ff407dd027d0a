//! A number in quotes.
//! Remove the quotes.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "exports", ttl = "10s", permits = 5)]
#[distributed_lock(key = "exports", ttl = "10s", permits = "5")]
async fn prices() -> Result<u64, Error> {
    Ok(1)
}

fn main() {
    let _ = prices();
}
