//! `on_error` moves a value that the body moves, too.
//! Clone it first.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "user", ttl = "10s", on_error = { let name = name.clone(); move |_| Ok(name) })]
#[distributed_lock(key = "user", ttl = "10s", on_error = move |_| Ok(name))]
async fn rename(name: String) -> Result<String, Error> {
    Ok(name)
}

fn main() {
    let _ = rename(String::new());
}
