//! `on_error` changes a parameter that the body moves.
//! Make a new value inside of it.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order", ttl = "10s", on_error = |_| Ok(uid + 1))]
#[distributed_lock(key = "order", ttl = "10s", on_error = |_| { uid += 1; Ok(uid) })]
// instead: async fn place_order(uid: u64) -> Result<u64, Error> {
async fn place_order(mut uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
