//! The attribute on a static.
//! Put it on an async function.
use lock_core::distributed_lock;

// instead:
#[distributed_lock(key = "shop", ttl = "10s")]
static LIMIT: u64 = 3;

// instead: #[distributed_lock(key = "shop", ttl = "10s")]
// instead: async fn open() -> Result<(), lock_core::Error> {
async fn open() -> Result<(), lock_core::Error> {
    Ok(())
}

fn main() {
    assert_eq!(LIMIT, 3);
    let _ = open();
}
