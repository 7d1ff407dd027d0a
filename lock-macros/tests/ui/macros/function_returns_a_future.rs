//! A future that is made in steps.
//! Make the function async.
use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> Result<u64, Error> {
fn place_order(uid: u64) -> impl Future<Output = Result<u64, Error>> {
    // instead: let doubled = uid * 2;
    let doubled = uid * 2;
    // instead: Ok(doubled)
    async move { Ok(doubled) }
}

fn main() {
    let _ = place_order(1);
}
