//! Another library's error type.
//! Use your own error type with both conversions, or a boxed one.
use lock_core::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
async fn place_order(uid: u64) -> Result<u64, std::io::Error> {
    // instead: Ok(uid)
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
