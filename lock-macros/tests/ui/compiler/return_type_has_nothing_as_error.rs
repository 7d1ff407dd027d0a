//! `()` as the error type.
//! Use your own error type, or `lock_core::Error`.
use lock_core::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<u64, lock_core::Error> {
async fn place_order(uid: u64) -> Result<u64, ()> {
    // instead: Ok(uid)
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
