//! A body that returns another type.
//! Return the type in the head.
use lock_core::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<String, lock_core::Error> {
async fn place_order(uid: u64) -> Result<u64, lock_core::Error> {
    // instead: Ok(uid.to_string())
    Ok(uid.to_string())
}

fn main() {
    let _ = place_order(1);
}
