//! The enum's variant.
//! Write the word.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", on_lost = ignore)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", on_lost = OnLost::Ignore)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
