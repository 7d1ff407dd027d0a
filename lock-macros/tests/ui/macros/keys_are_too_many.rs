//! A list of more than 16 keys.
//! Lock what the keys have in common.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "bank:<from>", ttl = "10s")]
#[distributed_lock(keys = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"], ttl = "10s")]
async fn transfer(from: u64, to: u64) -> Result<u64, Error> {
    Ok(from + to)
}

fn main() {
    let _ = transfer(1, 2);
}
