//! A value whose parameter is `_`.
//! Give the parameter a name.
use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<(), Error> {
async fn place_order(_: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = place_order(1);
}
