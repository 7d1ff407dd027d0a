//! The attribute on a trait.
//! Put it on a function inside that has a body.
use lock_core::{Error, distributed_lock};

// instead:
#[distributed_lock(key = "shop", ttl = "10s")]
trait Shop {
    // instead: #[distributed_lock(key = "shop", ttl = "10s")]
    // instead: async fn open() -> Result<(), Error> {
    async fn open() -> Result<(), Error> {
        Ok(())
    }
}

impl Shop for () {}

fn main() {
    let _ = <() as Shop>::open();
}
