//! A word in quotes.
//! Remove the quotes.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", release = background)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", release = "background")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
