//! A key that moves a parameter which the body uses.
//! Borrow it, or clone it.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = &*name, ttl = "10s")]
#[distributed_lock(key = name, ttl = "10s")]
async fn rename(name: String) -> Result<String, Error> {
    Ok(name)
}

fn main() {
    let _ = rename("Ann".to_owned());
}
