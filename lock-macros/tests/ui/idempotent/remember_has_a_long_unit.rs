//! A unit as a word.
//! Write its letter.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "1d")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "1 day")]
async fn charge(order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
