//! Below `#[tokio::test]`.
//! Put it above.
use lock_core::distributed_lock;

// instead: #[distributed_lock(key = "nightly", ttl = "10s")]
// instead: #[tokio::test]
#[tokio::test]
// instead:
#[distributed_lock(key = "nightly", ttl = "10s")]
async fn a_test_under_a_lock() -> Result<(), lock_core::Error> {
    Ok(())
}

fn main() {}
