//! `#[instrument]` below, and a parameter taken apart.
//! Put `#[instrument]` above.
use lock_core::{Error, distributed_lock};

// instead: #[tracing::instrument]
// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s")]
#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead:
#[tracing::instrument]
async fn place_order((uid, _): (u64, u64)) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order((1, 2));
}
