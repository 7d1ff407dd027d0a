//! A typo in a function's name.
//! Use the name that exists.
use lock_core::{Error, distributed_lock};

fn refuse(error: Error) -> Result<u64, Error> {
    Err(error)
}

// instead: #[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = refuse)]
#[distributed_lock(key = "order:<uid>", ttl = "10s", on_error = refus)]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = (place_order(1), refuse);
}
