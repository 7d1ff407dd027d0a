//! Rust code in quotes.
//! Remove the quotes.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = std::time::Duration::from_secs(10))]
#[distributed_lock(key = "order:<uid>", ttl = "Duration::from_secs(10)")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
