//! An async closure.
//! Return the value without waiting.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = |error| Err(error))]
#[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = async |error| Err(error))]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
