//! An `Option` in the key.
//! Write a text for `None`.
use lock_core::{Error, distributed_lock};

struct Cart {
    id: u64,
}

// instead: #[distributed_lock(key = "order:<cart.unwrap_or(0)>", ttl = "10s")]
#[distributed_lock(key = "order:<cart>", ttl = "10s")]
async fn place_order(cart: Option<u64>) -> Result<u64, Error> {
    Ok(cart.unwrap_or(0))
}

fn main() {
    let _ = place_order(Some(Cart { id: 1 }.id));
}
