//! A typo in a word.
//! Use the word that the message suggests.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", on_lost = cancel)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", on_lost = cancle)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
