//! A life of zero.
//! Write the time for which a later call gets this result.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "0s")]
async fn charge(order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
