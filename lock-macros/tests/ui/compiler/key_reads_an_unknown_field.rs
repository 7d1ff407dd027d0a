//! A typo in a field's name.
//! Use the name that exists.
use lock_core::{Error, distributed_lock};

struct Cart {
    id: u64,
}

// instead: #[distributed_lock(key = "order:<cart.id>", ttl = "10s")]
#[distributed_lock(key = "order:<cart.idd>", ttl = "10s")]
async fn place_order(cart: Cart) -> Result<u64, Error> {
    Ok(cart.id)
}

fn main() {
    let _ = place_order(Cart { id: 1 });
}
