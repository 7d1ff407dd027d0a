//! Steps that many tests take, whatever the servers are.

use std::time::Duration;

use lock_core::{Error, ErrorKind, LockGuard, LockManager};
use lock_tests::{RedisServer, wait};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Somebody who waits for a lock.
pub(crate) type Waiter = JoinHandle<Result<LockGuard, Error>>;

/// Long enough never to run out in a test that is not about time.
pub(crate) fn long() -> Duration {
    Duration::from_secs(60)
}

/// Patient enough for a machine that is busy with the other tests.
pub(crate) async fn manager(url: &str) -> LockManager {
    let builder = LockManager::builder(url).operation_timeout(Duration::from_secs(5));
    builder.connect().await.expect("a manager")
}

/// Takes a lock that nobody has.
pub(crate) async fn taken(locks: &LockManager, key: &str, ttl: Duration) -> LockGuard {
    let request = locks.lock(key).ttl(ttl);
    request.acquire().await.expect("free")
}

/// The lock, of which its waiter was told in time.
pub(crate) async fn its_turn(waiter: Waiter) -> LockGuard {
    let guard = timeout(wait::PATIENCE, waiter).await;
    let guard = guard.expect("not missed").expect("no panic");
    guard.expect("its turn")
}

/// What was asked from this runtime before is answered: its connection has answered what came behind it.
/// That somebody stands in the queue says only that the server has heard of it.
pub(crate) async fn all_is_answered(locks: &LockManager) {
    let guard = taken(locks, "behind", long()).await;
    guard.release().await.expect("held");
}

/// No manager comes of this URL, which holds the password `sesame`: soon, for this reason, and without
/// a secret.
pub(crate) async fn refused(url: &str, why: &str) -> Error {
    let connect = LockManager::builder(url).connect_timeout(Duration::from_secs(2));
    let error = timeout(wait::PATIENCE, connect.connect()).await;
    let error = error.expect("in bounded time").expect_err("no manager");
    let shown = format!("{error} {error:?}");
    assert!(shown.contains(why), "{shown}");
    assert!(!shown.contains("sesame"), "{shown}");
    error
}

/// The kind of what went wrong; panics if nothing did.
#[track_caller]
pub(crate) fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    match result {
        Ok(_) => panic!("an error was expected"),
        Err(error) => error.kind(),
    }
}

/// The keys of locks and their queues; the mark stays for ever.
pub(crate) fn keys(server: &RedisServer) -> Vec<String> {
    let mut keys = server.keys();
    keys.retain(|key| key != "lockkit:!f");
    keys
}
