//! Clients of other libraries.
//! Remove it, and let only this kit lock the key.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", interop = true)]
async fn charge(order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
