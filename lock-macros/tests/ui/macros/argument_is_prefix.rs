//! `prefix`, as other libraries have it.
//! Write the text into the key; what all keys begin with is set on the manager.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "shop:order:<uid>", ttl = "10s")]
#[distributed_lock(key = "order:<uid>", ttl = "10s", prefix = "shop")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
