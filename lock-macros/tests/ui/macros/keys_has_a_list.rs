//! A list in a list.
//! Write one list.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(keys = ["account:<from>", "account:<to>"], ttl = "10s")]
#[distributed_lock(keys = [["account:<from>", "account:<to>"]], ttl = "10s")]
async fn transfer(from: u64, to: u64) -> Result<u64, Error> {
    Ok(from + to)
}

fn main() {
    let _ = transfer(1, 2);
}
