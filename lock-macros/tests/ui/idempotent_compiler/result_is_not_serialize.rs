//! A result that serde cannot keep.
//! Derive `Serialize` and `Deserialize`.
use lock_core::{Error, idempotent};

// instead: #[derive(serde::Serialize, serde::Deserialize)]
#[derive(Debug)]
struct Receipt(u64);

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
async fn charge(order: u64) -> Result<Receipt, Error> {
    Ok(Receipt(order))
}

fn main() {
    let _ = charge(1);
}
