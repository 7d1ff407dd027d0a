//! A reference as the result.
//! Return data of its own.
use lock_core::{Error, idempotent};

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
// instead: async fn charge(order: &str) -> Result<String, Error> {
async fn charge(order: &str) -> Result<&str, Error> {
    // instead: Ok(order.to_owned())
    Ok(order)
}

fn main() {
    let _ = charge("1");
}
