use lock_macros::distributed_lock;

#[tokio::test]
#[distributed_lock(key = "nightly", ttl = "10s")]
async fn a_test_under_a_lock() -> Result<(), String> {
    Ok(())
}

fn main() {}
