//! A body that cannot be spawned.
//! Drop the value that is not `Send` before the await.
use std::{future::ready, rc::Rc};

use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "user", ttl = "10s")]
async fn rename(uid: u64) -> Result<u64, Error> {
    let shared = Rc::new(uid);
    // instead: drop(shared);
    // instead: ready(()).await;
    ready(()).await;
    // instead: Ok(uid)
    Ok(*shared)
}

fn main() {
    let _ = || tokio::spawn(rename(1));
}
