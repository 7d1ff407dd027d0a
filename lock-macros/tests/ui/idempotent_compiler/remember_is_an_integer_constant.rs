//! A constant that is no `Duration`.
//! Make it a `Duration`.
use lock_core::{Error, idempotent};

// instead: const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);
const DAY: u64 = 86_400;

#[idempotent(key = "charge:<order>", ttl = "10s", remember = DAY)]
async fn charge(order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
