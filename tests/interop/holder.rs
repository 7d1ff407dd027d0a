//! A process of the kit that holds the lock until it is killed.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use lock_core::LockManager;

use crate::stage;

/// Takes the lock, says so, and renews it until the input ends.
pub(crate) async fn hold(url: &str, namespace: &str, ttl: &str) -> ExitCode {
    let ttl = Duration::from_millis(ttl.parse().expect("a number"));
    let locks = LockManager::builder(url)
        .namespace(namespace)
        .connect()
        .await;
    let locks = locks.expect("a manager");
    let guard = stage::request(&locks, ttl)
        .acquire()
        .await
        .expect("a free lock");
    println!("held");
    let end = tokio::task::spawn_blocking(|| io::read_to_string(io::stdin()));
    let _ = end.await;
    drop(guard);
    ExitCode::SUCCESS
}
