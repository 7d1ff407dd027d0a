//! A parameter that is in no part of the key.
//! Compare it, or say that it does not matter.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = "<cents>")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
// instead: async fn charge(order: u64, cents: u64) -> Result<u64, Error> {
async fn charge(order: u64, cents: u64) -> Result<u64, Error> {
    Ok(order + cents)
}

fn main() {
    let _ = charge(1, 2);
}
