//! A half-typed condition.
//! Finish it.
use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    // instead: if uid == 0 { drop(uid.to_string()); }
    if uid ==
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
