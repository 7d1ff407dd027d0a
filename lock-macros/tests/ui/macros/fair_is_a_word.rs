//! A word where `true` or `false` belongs.
//! Write `false`, for throughput where tasks of several processes wait for microseconds of work.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", fair = false)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", fair = never)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
