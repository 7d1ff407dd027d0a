//! A closure for `errors` that returns no `bool`.
//! Return `true` for errors to remember.
use lock_core::{Error, idempotent};

#[derive(serde::Serialize, serde::Deserialize)]
struct Refused;

impl From<Error> for Refused {
    fn from(_: Error) -> Self {
        Refused
    }
}

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", errors = |_| true)]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", errors = |_| 1)]
async fn charge(order: u64) -> Result<u64, Refused> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
