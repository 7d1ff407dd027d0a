//! Gaps of a reader.
//! Set `interop` on the writers.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "catalogue", ttl = "10s", mode = read)]
#[distributed_lock(key = "catalogue", ttl = "10s", mode = read, interop = true)]
async fn prices() -> Result<u64, Error> {
    Ok(1)
}

fn main() {
    let _ = prices();
}
