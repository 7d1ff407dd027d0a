//! A return type that cannot carry the error.
//! Return a `Result`.
use lock_core::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<u64, lock_core::Error> {
async fn place_order(uid: u64) -> u64 {
    // instead: Ok(uid)
    uid
}

fn main() {
    let _ = place_order(1);
}
