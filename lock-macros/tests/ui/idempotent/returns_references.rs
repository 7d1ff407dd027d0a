//! References inside of the result.
//! Return data of its own.
use lock_core::{Error, idempotent};

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
// instead: async fn charge(order: &str) -> Result<Vec<(u64, String)>, Error> {
async fn charge(order: &str) -> Result<Vec<(u64, &str)>, Error> {
    // instead: Ok(vec![(1, order.to_owned())])
    Ok(vec![(1, order)])
}

fn main() {
    let _ = charge("1");
}
