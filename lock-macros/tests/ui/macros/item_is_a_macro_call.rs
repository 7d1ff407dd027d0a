//! The attribute on a macro call.
//! Put it on an async function.
use lock_core::distributed_lock;

// instead:
#[distributed_lock(key = "shop", ttl = "10s")]
std::thread_local!(static LIMIT: u64 = 3);

// instead: #[distributed_lock(key = "shop", ttl = "10s")]
// instead: async fn open() -> Result<(), lock_core::Error> {
async fn open() -> Result<(), lock_core::Error> {
    Ok(())
}

fn main() {
    LIMIT.with(|limit| assert_eq!(*limit, 3));
    let _ = open();
}
