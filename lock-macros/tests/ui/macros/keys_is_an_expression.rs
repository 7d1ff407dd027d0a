//! A list whose length is known at run time only.
//! Call `LockManager::lock_all` in the body.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(keys = ["account:<from>", "account:<to>"], ttl = "10s")]
#[distributed_lock(keys = accounts(), ttl = "10s")]
async fn transfer(from: u64, to: u64) -> Result<u64, Error> {
    Ok(from + to)
}

fn main() {
    let _ = transfer(1, 2);
}
