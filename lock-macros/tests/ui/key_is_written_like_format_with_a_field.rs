use lock_macros::distributed_lock;

#[distributed_lock(key = "order:{line.sku:?}", ttl = "10s")]
async fn place_order(line: u64) -> Result<u64, String> {
    Ok(line)
}

fn main() {
    let _ = place_order(1);
}
