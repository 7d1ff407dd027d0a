//! `?` on an error that the return type cannot take.
//! Turn it into the function's error.
use lock_core::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
async fn place_order(uid: u64) -> Result<u64, lock_core::Error> {
    // instead: Ok(uid + "1".parse::<u64>()?)
    Ok(uid + "1".parse::<u64>()?)
}

fn main() {
    let _ = place_order(1);
}
