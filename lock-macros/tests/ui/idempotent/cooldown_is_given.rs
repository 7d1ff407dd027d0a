//! A cooldown.
//! Remove it; the result keeps the key taken.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", cooldown = "2s")]
async fn charge(order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
