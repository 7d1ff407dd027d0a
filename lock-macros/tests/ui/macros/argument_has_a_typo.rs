//! A typo in the name of an argument.
//! Use the name that the message suggests.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s")]
#[distributed_lock(key = "order:<uid>", tll = "10s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
