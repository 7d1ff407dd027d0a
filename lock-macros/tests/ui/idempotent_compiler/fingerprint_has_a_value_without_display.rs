//! A value without `Display` in a fingerprint.
//! Name a part of it.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = "<cart.len()>")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = "<cart>")]
async fn charge(order: u64, cart: Vec<u64>) -> Result<u64, Error> {
    Ok(order + cart[0])
}

fn main() {
    let _ = charge(1, vec![2]);
}
