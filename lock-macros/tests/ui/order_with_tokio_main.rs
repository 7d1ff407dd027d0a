use lock_macros::distributed_lock;

#[tokio::main(flavor = "current_thread")]
#[distributed_lock(key = "nightly", ttl = "10s")]
async fn main() -> Result<(), String> {
    Ok(())
}
