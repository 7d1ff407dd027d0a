//! A function that never returns.
//! Give it a return value.
use lock_core::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<(), lock_core::Error> {
async fn place_order(uid: u64) -> ! {
    loop {
        drop(uid.to_string());
    }
}

fn main() {
    let _ = place_order(1);
}
