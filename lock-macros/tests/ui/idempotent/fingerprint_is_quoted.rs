//! `none` in quotes.
//! Remove the quotes.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = none)]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = "none")]
async fn charge(order: u64, cents: u64) -> Result<u64, Error> {
    Ok(order + cents)
}

fn main() {
    let _ = charge(1, 2);
}
