//! A cooldown of more than 24 hours.
//! Write at most `"24h"`.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", cooldown = "24h")]
#[distributed_lock(key = "order:<uid>", ttl = "10s", cooldown = "25h")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
