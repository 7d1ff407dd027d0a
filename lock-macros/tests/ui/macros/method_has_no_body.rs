//! The attribute on a method without a body.
//! Put it on the method that implements it.
use lock_core::{Error, distributed_lock};

trait Shop {
    // instead:
    #[distributed_lock(key = "order:<uid>", ttl = "10s")]
    async fn place_order(&self, uid: u64) -> Result<u64, Error>;
}

impl Shop for () {
    // instead: #[distributed_lock(key = "order:<uid>", ttl = "10s")]
    // instead: async fn place_order(&self, uid: u64) -> Result<u64, Error> {
    async fn place_order(&self, uid: u64) -> Result<u64, Error> {
        Ok(uid)
    }
}

fn main() {
    let _ = ().place_order(1);
}
