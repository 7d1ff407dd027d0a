//! A cooldown of a reader.
//! Remove the cooldown.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "catalogue", ttl = "10s", mode = read)]
#[distributed_lock(key = "catalogue", ttl = "10s", mode = read, cooldown = "2s")]
async fn prices() -> Result<u64, Error> {
    Ok(1)
}

fn main() {
    let _ = prices();
}
