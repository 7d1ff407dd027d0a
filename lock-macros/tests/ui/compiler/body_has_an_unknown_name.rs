//! A typo in a name in the body.
//! Use the name that exists.
use lock_core::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<u64, lock_core::Error> {
async fn place_order(uid: u64) -> Result<u64, lock_core::Error> {
    // instead: Ok(uid)
    Ok(uld)
}

fn main() {
    let _ = place_order(1);
}
