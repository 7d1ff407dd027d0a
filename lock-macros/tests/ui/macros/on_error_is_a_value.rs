//! A value in place of a closure.
//! Write a closure that returns it.
use lock_core::distributed_lock;

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = |_| "busy")]
#[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = "busy")]
async fn place_order(uid: u64) -> &'static str {
    if uid > 0 { "placed" } else { "nothing" }
}

fn main() {
    let _ = place_order(1);
}
