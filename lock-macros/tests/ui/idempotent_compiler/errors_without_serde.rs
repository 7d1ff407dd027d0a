//! `errors` with an error that serde cannot keep.
//! Derive `Serialize` and `Deserialize`.
use lock_core::{Error, idempotent};

// instead: #[derive(serde::Serialize, serde::Deserialize)]
#[derive(Debug)]
struct Refused;

impl From<Error> for Refused {
    fn from(_: Error) -> Self {
        Refused
    }
}

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", errors = |_| true)]
async fn charge(order: u64) -> Result<u64, Refused> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
