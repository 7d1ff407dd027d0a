//! Below `#[tokio::main]`.
//! Put it above.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "nightly", ttl = "10s")]
// instead: #[tokio::main(flavor = "current_thread")]
#[tokio::main(flavor = "current_thread")]
// instead:
#[distributed_lock(key = "nightly", ttl = "10s")]
async fn main() -> Result<(), Error> {
    Ok(())
}
