//! The opposite of an argument.
//! Write `fair = false`.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", fair = false)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", unfair)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
