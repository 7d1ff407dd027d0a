//! Two parameters that are in no part of the key.
//! Compare those that make another call.
use lock_core::{Error, idempotent};

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", fingerprint = "<cents>")]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
// instead: async fn charge(order: u64, cents: u64, note: &str) -> Result<usize, Error> {
async fn charge(order: u64, cents: u64, note: &str) -> Result<usize, Error> {
    Ok(note.len() + usize::from(order + cents > 2))
}

fn main() {
    let _ = charge(1, 2, "");
}
