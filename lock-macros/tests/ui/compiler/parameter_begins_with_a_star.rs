//! A parameter that begins with a star.
//! Write its name and its type.
use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "order", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<(), Error> {
async fn place_order(*uid: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
