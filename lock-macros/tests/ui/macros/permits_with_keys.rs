//! Permits of several keys.
//! Lock the keys alone, or count one key.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(keys = ["a", "b"], ttl = "10s")]
#[distributed_lock(keys = ["a", "b"], ttl = "10s", permits = 5)]
async fn prices() -> Result<u64, Error> {
    Ok(1)
}

fn main() {
    let _ = prices();
}
