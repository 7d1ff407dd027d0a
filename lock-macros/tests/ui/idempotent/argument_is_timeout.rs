//! `timeout`, the name in other libraries.
//! Use `wait`.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", wait = "2s")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", timeout = "2s")]
async fn charge(order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
