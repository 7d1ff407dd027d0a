//! The attribute on an impl.
//! Put it on a function inside.
use lock_core::distributed_lock;

struct Shop;

// instead:
#[distributed_lock(key = "shop", ttl = "10s")]
impl Shop {
    // instead: #[distributed_lock(key = "shop", ttl = "10s")]
    // instead: pub async fn open() -> Result<(), lock_core::Error> {
    pub async fn open() -> Result<(), lock_core::Error> {
        Ok(())
    }
}

fn main() {
    let _ = Shop::open();
}
