//! A reader of several keys.
//! Lock the keys alone, or read one key.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(keys = ["a", "b"], ttl = "10s")]
#[distributed_lock(keys = ["a", "b"], ttl = "10s", mode = read)]
async fn prices() -> Result<u64, Error> {
    Ok(1)
}

fn main() {
    let _ = prices();
}
