//! A value without `Display`.
//! Use a part of it that implements `Display`.
use lock_core::{Error, distributed_lock};

struct Cart {
    id: u64,
}

// instead: #[distributed_lock(key = "order:<cart.id>", ttl = "10s")]
#[distributed_lock(key = "order:<cart>", ttl = "10s")]
async fn place_order(cart: Cart) -> Result<u64, Error> {
    Ok(cart.id)
}

fn main() {
    let _ = place_order(Cart { id: 1 });
}
