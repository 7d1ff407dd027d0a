//! `retry`, an argument of other libraries.
//! Set the longest wait; the server notifies the waiter.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", wait = "2s")]
#[distributed_lock(key = "order:<uid>", ttl = "10s", retry = 3)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
