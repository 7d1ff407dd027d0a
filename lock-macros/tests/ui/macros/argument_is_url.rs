//! A URL in place of the manager.
//! Install a manager at the start of the program, or name one here.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s")]
#[distributed_lock(key = "order:<uid>", ttl = "10s", url = "redis://127.0.0.1")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
