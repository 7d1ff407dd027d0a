//! A `?` in `ttl`.
//! Pass the ttl as a parameter.
use std::time::Duration;

use lock_core::{Error, distributed_lock};

fn configured() -> Result<Duration, Error> {
    Ok(Duration::from_secs(10))
}

// instead: #[distributed_lock(key = "order:<uid>", ttl = lease)]
#[distributed_lock(key = "order:<uid>", ttl = configured()?)]
async fn place_order(uid: u64, lease: Duration) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = configured().map(|lease| place_order(1, lease));
}
