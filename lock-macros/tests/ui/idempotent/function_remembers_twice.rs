//! The same key twice.
//! Keep one.
use lock_core::{Error, idempotent};

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
// instead:
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "1h")]
async fn charge(order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
