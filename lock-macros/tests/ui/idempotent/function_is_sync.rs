//! A function that is not async.
//! Make it async.
use lock_core::{Error, idempotent};

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
// instead: async fn charge(order: u64) -> Result<u64, Error> {
fn charge(order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
