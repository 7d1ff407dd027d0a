use lock_macros::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
fn place_order(uid: u64) -> impl Future<Output = Result<u64, String>> {
    let doubled = uid * 2;
    async move { Ok(doubled) }
}

fn main() {
    let _ = place_order(1);
}
