//! `self` in an associated function.
//! Add `&self`, or use a parameter.
use lock_core::{Error, distributed_lock};

struct Shop {
    id: u64,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.id>", ttl = "10s")]
    // instead: async fn open(&self) -> Result<u64, Error> {
    async fn open() -> Result<u64, Error> {
        Ok(1)
    }
}

fn main() {
    // instead: let _ = Shop { id: 1 }.open();
    let _ = (Shop { id: 1 }.id, Shop::open());
}
