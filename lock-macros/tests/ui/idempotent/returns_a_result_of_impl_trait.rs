//! `impl Trait` inside of a `Result`.
//! Name the type.
use lock_core::{Error, idempotent};

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
// instead: async fn charge(order: u64) -> Result<u64, Error> {
async fn charge(order: u64) -> Result<impl std::fmt::Display, Error> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
