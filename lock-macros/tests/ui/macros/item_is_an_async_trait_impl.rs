//! The attribute above `#[async_trait]`.
//! Put it on the methods.
use lock_core::{Error, distributed_lock};

#[async_trait::async_trait]
trait Shop {
    async fn open(&self) -> Result<(), Error>;
}

// instead:
#[distributed_lock(key = "shop", ttl = "10s")]
#[async_trait::async_trait]
impl Shop for () {
    // instead: #[distributed_lock(key = "shop", ttl = "10s")]
    // instead: async fn open(&self) -> Result<(), Error> {
    async fn open(&self) -> Result<(), Error> {
        Ok(())
    }
}

fn main() {
    let _ = ().open();
}
