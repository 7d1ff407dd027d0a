//! `remember`, an argument of `#[idempotent]`.
//! Write `#[idempotent]`, with the feature of that name.
use lock_core::Error;

// instead: #[lock_core::idempotent(key = "order:<uid>", ttl = "10s", remember = "24h")]
#[lock_core::distributed_lock(key = "order:<uid>", ttl = "10s", remember = "24h")]
async fn place_order(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

fn main() {
    let _ = place_order(1);
}
