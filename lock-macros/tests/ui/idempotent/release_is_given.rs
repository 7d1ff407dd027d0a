//! A release in the background.
//! Remove it.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", release = background)]
async fn charge(order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
