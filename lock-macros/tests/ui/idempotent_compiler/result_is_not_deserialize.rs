//! A result that serde cannot read.
//! Derive `Deserialize` too.
use lock_core::{Error, idempotent};

// instead: #[derive(serde::Serialize, serde::Deserialize)]
#[derive(serde::Serialize)]
struct Receipt(u64);

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
async fn charge(order: u64) -> Result<Receipt, Error> {
    Ok(Receipt(order))
}

fn main() {
    let _ = charge(1);
}
