//! A type parameter as the result, without the bounds of serde.
//! Give it these bounds.
use lock_core::{Error, idempotent};

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = none)]
// instead: async fn charge<T: serde::Serialize + serde::de::DeserializeOwned>(order: u64, receipt: T) -> Result<T, Error> {
async fn charge<T>(order: u64, receipt: T) -> Result<T, Error> {
    println!("{order}");
    Ok(receipt)
}

fn main() {
    let _ = charge(1, 2);
}
