//! A method in a placeholder that consumes its value.
//! Use a method that borrows; the suggested clone would clone the template.
use lock_core::{Error, distributed_lock};

// instead: #[distributed_lock(key = "name:<name.as_bytes().len()>", ttl = "10s")]
#[distributed_lock(key = "name:<name.into_bytes().len()>", ttl = "10s")]
async fn rename(name: String) -> Result<String, Error> {
    Ok(name)
}

fn main() {
    let _ = rename("Ann".to_owned());
}
