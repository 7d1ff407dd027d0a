//! `false` in quotes.
//! Remove the quotes.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", reentrant = false)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", reentrant = "false")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
