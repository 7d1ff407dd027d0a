//! A number in place of a path.
//! Write the path of the library.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", crate = ::lock_core)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", crate = 5)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
