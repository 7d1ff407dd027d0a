//! A function that returns no `Result`.
//! Return a `Result`.
use lock_core::idempotent;

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
// instead: async fn charge(order: u64) -> Result<u64, lock_core::Error> {
async fn charge(order: u64) -> u64 {
    // instead: Ok(order)
    order
}

fn main() {
    let _ = charge(1);
}
