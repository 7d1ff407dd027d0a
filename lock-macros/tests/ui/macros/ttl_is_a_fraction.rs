//! A fraction.
//! Use a smaller unit.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "1500ms")]
#[distributed_lock(key = "order:<uid>", ttl = "1.5s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
