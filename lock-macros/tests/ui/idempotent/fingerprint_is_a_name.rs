//! A fingerprint that is no template.
//! Write the name into a template.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = "<cents>")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = cents)]
async fn charge(order: u64, cents: u64) -> Result<u64, Error> {
    Ok(order + cents)
}

fn main() {
    let _ = charge(1, 2);
}
