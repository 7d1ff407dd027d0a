//! A spawned function with an argument that is not `Send`.
//! Use one that is `Send`.
use std::sync::Mutex;

use lock_core::{Error, distributed_lock};

#[distributed_lock(key = "user", ttl = "10s")]
// instead: async fn rename(uid: &Mutex<u64>) -> Result<u64, Error> {
async fn rename(uid: std::sync::MutexGuard<'_, u64>) -> Result<u64, Error> {
    // instead: Ok(uid.lock().map_or(0, |uid| *uid))
    Ok(*uid)
}

fn main() {
    static UID: Mutex<u64> = Mutex::new(1);
    // instead: let _ = || tokio::spawn(rename(&UID));
    let _ = || UID.lock().map(|uid| tokio::spawn(rename(uid)).abort());
}
