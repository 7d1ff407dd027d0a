//! A reference to a value of the body.
//! Return the value.
use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "user", ttl = "10s")]
// instead: async fn rename(name: String) -> Result<String, Error> {
async fn rename<'a>(name: String) -> Result<&'a str, Error> {
    // instead: Ok(name)
    Ok(name.as_str())
}

fn main() {
    let _ = rename(String::new());
}
