use lock_macros::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl: "10s")]
async fn place_order(uid: u64) -> Result<u64, String> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
