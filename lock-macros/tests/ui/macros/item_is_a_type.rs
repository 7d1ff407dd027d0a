//! The attribute on a type alias.
//! Put it on an async function.
use lock_core::distributed_lock;

// instead:
#[distributed_lock(key = "shop", ttl = "10s")]
type Limit = u64;

// instead: #[distributed_lock(key = "shop", ttl = "10s")]
// instead: async fn open() -> Result<(), lock_core::Error> {
async fn open() -> Result<(), lock_core::Error> {
    Ok(())
}

fn main() {
    assert_eq!(3 as Limit, 3);
    let _ = open();
}
