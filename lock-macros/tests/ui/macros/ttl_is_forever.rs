//! A ttl without an end.
//! Choose a duration; the lock is renewed while the body runs.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "30s")]
#[distributed_lock(key = "order:<uid>", ttl = forever)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
