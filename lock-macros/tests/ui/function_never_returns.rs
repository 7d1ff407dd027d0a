use lock_macros::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = |_| loop {})]
async fn place_order(uid: u64) -> ! {
    loop {
        drop(uid.to_string());
    }
}

fn main() {
    let _ = place_order(1);
}
