//! A value that is in the key already.
//! Name only the other values.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = "<cents>")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = "<order>:<cents>")]
async fn charge(order: u64, cents: u64) -> Result<u64, Error> {
    Ok(order + cents)
}

fn main() {
    let _ = charge(1, 2);
}
