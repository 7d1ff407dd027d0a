//! A typo in a function's name.
//! Use the name that exists.
use lock_core::{Error, distributed_lock};

fn key_of(uid: u64) -> u64 {
    uid % 16
}

// instead: #[distributed_lock(key = "order:<key_of(uid)>", ttl = "10s")]
#[distributed_lock(key = "order:<key_off(uid)>", ttl = "10s")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = (place_order(1), key_of(1));
}
