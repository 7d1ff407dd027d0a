//! The attribute on an enum.
//! Put it on an async function.
use lock_core::distributed_lock;

// instead:
#[distributed_lock(key = "shop", ttl = "10s")]
enum Order {
    Placed,
}

// instead: #[distributed_lock(key = "shop", ttl = "10s")]
// instead: async fn open() -> Result<(), lock_core::Error> {
async fn open() -> Result<(), lock_core::Error> {
    Ok(())
}

fn main() {
    let _ = Order::Placed;
    let _ = open();
}
