//! A value of a generic type without a `Display`.
//! Require `Display` in the bounds.
use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "order:<id>", ttl = "10s")]
// instead: async fn place_order<I: std::fmt::Display>(id: I) -> Result<(), Error> {
async fn place_order<I>(id: I) -> Result<(), Error> {
    drop(id);
    Ok(())
}

fn main() {
    let _ = place_order(1);
}
