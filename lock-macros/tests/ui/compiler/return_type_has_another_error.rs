//! An error type without a conversion from the lock's error.
//! Implement `From<lock_core::Error>` for it.
use lock_core::distributed_lock;

#[derive(Debug)]
// instead: struct ShopError;
// instead: impl From<lock_core::Error> for ShopError { fn from(_: lock_core::Error) -> Self { ShopError } }
struct ShopError;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
async fn place_order(uid: u64) -> Result<u64, ShopError> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
