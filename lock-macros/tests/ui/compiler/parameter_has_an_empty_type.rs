//! A parameter whose type is missing.
//! Write it after the colon.
use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "order", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<(), Error> {
async fn place_order(uid: ) -> Result<(), Error> {
    Ok(())
}

fn main() {}
