//! A method that is not async.
//! Make it async.
use lock_core::{Error, distributed_lock};

struct Shop;

impl Shop {
    #[distributed_lock(key = "order:<uid>", ttl = "10s")]
    // instead: async fn place_order(&self, uid: u64) -> Result<u64, Error> {
    fn place_order(&self, uid: u64) -> Result<u64, Error> {
        Ok(uid)
    }
}

fn main() {
    let _ = Shop.place_order(1);
}
