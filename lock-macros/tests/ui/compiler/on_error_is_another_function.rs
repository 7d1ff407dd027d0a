//! A function with other parameters.
//! Accept a `lock_core::Error`.
use lock_core::{Error, distributed_lock};

fn placed(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = |_| placed(0))]
#[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = placed)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
