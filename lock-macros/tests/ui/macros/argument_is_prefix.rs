//! `prefix`, an argument of other libraries.
//! Write the text into the key, or set the `namespace` of the manager.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "shop:order:<uid>", ttl = "10s")]
#[distributed_lock(key = "order:<uid>", ttl = "10s", prefix = "shop")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
