//! Offers steps that many tests take, for every kind of server.

use std::thread;
use std::time::Duration;

use lock_core::{Error, ErrorKind, FencingToken, LockGuard, LockManager, Wait};
use lock_tests::{Direction, Proxy, RedisServer, wait};
use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A task that waits for a lock.
pub(crate) type Waiter = JoinHandle<Result<LockGuard, Error>>;

/// Returns a ttl that never runs out in a test that is not about time.
pub(crate) fn long() -> Duration {
    Duration::from_secs(60)
}

/// The ttl of a lock that must outlive it by renewals, on a machine that is busy with other tests.
pub(crate) const OUTLIVED: Duration = Duration::from_secs(3);

/// Makes a manager that is patient enough for a machine that is busy with other tests.
pub(crate) async fn manager(url: &str) -> LockManager {
    let builder = LockManager::builder(url)
        .operation_timeout(Duration::from_secs(5))
        .connect_timeout(wait::PATIENCE);
    builder.connect().await.expect("a manager")
}

/// Starts a server of one test, and makes a manager.
pub(crate) async fn served() -> (RedisServer, LockManager) {
    let server = RedisServer::start();
    let locks = manager(&server.url()).await;
    (server, locks)
}

/// Starts a server of one test, and makes managers of two processes.
pub(crate) async fn served_both() -> (RedisServer, LockManager, LockManager) {
    let (server, one) = served().await;
    let other = manager(&server.url()).await;
    (server, one, other)
}

/// Takes a lock that is free.
pub(crate) async fn taken(locks: &LockManager, key: &str, ttl: Duration) -> LockGuard {
    let request = locks.lock(key).ttl(ttl);
    request.acquire().await.expect("free")
}

/// Takes the lock and releases it.
pub(crate) async fn once(locks: &LockManager, key: &str) -> FencingToken {
    let guard = locks.lock(key).ttl(long()).acquire().await.expect("free");
    let fence = guard.fencing_token();
    guard.release().await.expect("held");
    fence
}

/// Checks that an attempt without a wait finds the lock held.
pub(crate) async fn is_refused(locks: &LockManager, key: &str) {
    let tried = locks.lock(key).try_acquire().await;
    assert!(tried.expect("an answer").is_none(), "the key is free");
}

/// Waits until so many waiters stand in the queue of a key.
pub(crate) async fn queued(server: &RedisServer, key: &str, count: usize) {
    let queue = format!("lockkit:!q:{{{key}}}");
    let count = count.to_string();
    wait::eventually("the waiters are queued", async || {
        server.cli(&["ZCARD", &queue]) == count
    })
    .await;
}

/// Starts a waiter for a key. Returns it when so many waiters stand in the queue.
pub(crate) async fn waits(
    server: &RedisServer,
    locks: &LockManager,
    key: &str,
    count: usize,
) -> Waiter {
    let waiter = tokio::spawn(locks.lock(key).ttl(long()).wait(Wait::Forever).acquire());
    queued(server, key, count).await;
    waiter
}

/// Returns the lock of a waiter, which must have been told in time.
pub(crate) async fn its_turn(waiter: Waiter) -> LockGuard {
    let guard = timeout(wait::PATIENCE, waiter).await;
    let guard = guard.expect("the waiter is told").expect("no panic");
    guard.expect("its turn")
}

/// Waits until earlier requests of this runtime are answered, by a later request on the same connection.
///
/// A ticket in the queue proves only that the server has processed the request.
pub(crate) async fn all_is_answered(locks: &LockManager) {
    once(locks, "behind").await;
}

/// Takes and releases a lock on a runtime that has no connection yet.
pub(crate) fn on_a_new_runtime(locks: &LockManager, key: &str) -> Result<(), Error> {
    let (locks, key) = (locks.clone(), key.to_owned());
    let thread = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let once = async { locks.lock(key).ttl(long()).acquire().await?.release().await };
        runtime.expect("a runtime").block_on(once)
    });
    thread.join().expect("no panic")
}

/// Checks that a manager connects to this URL, whose first answer comes late through this proxy.
pub(crate) async fn starts_although_slow(url: &str, proxy: &Proxy) {
    proxy.black_hole();
    let builder = LockManager::builder(url).connect_timeout(wait::PATIENCE);
    let connecting = tokio::spawn(builder.connect());
    let asks = async || proxy.held(Direction::Requests) > 0;
    wait::eventually("it asks", asks).await;
    // A manager that is connected waits a second for an answer.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    proxy.pass();
    let locks = connecting.await.expect("no panic").expect("a manager");
    once(&locks, "k").await;
}

/// Checks that no manager can connect to this URL, whose password is `sesame`.
///
/// The error must come soon, give this reason and contain no secret.
pub(crate) async fn refused(url: &str, why: &str) -> Error {
    let connect = LockManager::builder(url).connect_timeout(Duration::from_secs(2));
    let error = timeout(wait::PATIENCE, connect.connect()).await;
    let error = error.expect("in bounded time").expect_err("no manager");
    let shown = format!("{error} {error:?}");
    assert!(shown.contains(why), "{shown}");
    assert!(!shown.contains("sesame"), "{shown}");
    error
}

/// Returns the kind of the error; panics if there is none.
#[track_caller]
pub(crate) fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    match result {
        Ok(_) => panic!("an error was expected"),
        Err(error) => error.kind(),
    }
}

/// Checks that all locks of a manager are released in time.
pub(crate) async fn drains(locks: &LockManager) {
    let left = locks.drain(wait::PATIENCE).await;
    assert!(left.is_complete(), "{left:?}");
}

/// Returns the keys of locks and their queues, without the high-water mark, which stays for ever.
pub(crate) fn keys(server: &RedisServer) -> Vec<String> {
    let mut keys = server.keys();
    keys.retain(|key| key != "lockkit:!f");
    keys
}
