//! A list of keys beside a key.
//! Write all keys into the list.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(keys = ["account:<from>", "audit"], ttl = "10s")]
#[distributed_lock(key = "audit", keys = ["account:<from>"], ttl = "10s")]
async fn transfer(from: u64, to: u64) -> Result<u64, Error> {
    Ok(from + to)
}

fn main() {
    let _ = transfer(1, 2);
}
