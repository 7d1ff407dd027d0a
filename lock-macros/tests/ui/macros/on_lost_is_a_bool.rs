//! `true` in place of a word.
//! Write `cancel` or `ignore`.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", on_lost = cancel)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", on_lost = true)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
