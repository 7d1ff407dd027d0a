//! The attribute on a module.
//! Put it on a function inside.
use lock_core::distributed_lock;

// instead:
#[distributed_lock(key = "shop", ttl = "10s")]
mod shop {
    // instead: #[super::distributed_lock(key = "shop", ttl = "10s")]
    // instead: pub async fn open() -> Result<(), lock_core::Error> {
    pub async fn open() -> Result<(), lock_core::Error> {
        Ok(())
    }
}

fn main() {
    let _ = shop::open();
}
