//! A value in place of a closure.
//! Write a closure that returns it.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = |_| Ok(0))]
#[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = Ok(0))]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
