//! A function that returns `()`.
//! Return a `Result`, or add `on_error`.
use lock_core::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<(), lock_core::Error> {
async fn place_order(uid: u64) -> () {
    // instead: println!("{uid}");
    // instead: Ok(())
    println!("{uid}");
}

fn main() {
    let _ = place_order(1);
}
