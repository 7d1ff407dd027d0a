//! An error type that is not made from the lock's error.
//! Implement `From<lock_core::Error>`, or add `on_error`.
use lock_core::idempotent;

// instead: #[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h", on_error = |error| Err(error.to_string()))]
#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
async fn charge(order: u64) -> Result<u64, String> {
    Ok(order)
}

fn main() {
    let _ = charge(1);
}
