//! A value used after it moved.
//! Clone it before.
use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "user:<name>", ttl = "10s")]
async fn rename(name: String) -> Result<String, Error> {
    // instead: drop(name.clone());
    drop(name);
    Ok(name)
}

fn main() {
    let _ = rename(String::new());
}
