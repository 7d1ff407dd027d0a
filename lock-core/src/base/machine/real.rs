//! The operating system and tokio.

#![allow(
    clippy::disallowed_methods,
    reason = "this file is the only way to the machine"
)]

use std::future::Future;
use std::io;
use std::time::{Duration, SystemTime};

pub(crate) use tokio::runtime::{Handle, Id};
pub(crate) use tokio::task::Id as TaskId;
#[cfg(feature = "postgres")]
pub(crate) use tokio::task::JoinHandle;
#[cfg(feature = "redis")]
pub(crate) use tokio::task::JoinSet;
#[cfg(feature = "postgres")]
use tokio_postgres::tls::MakeTlsConnect;

/// Makes the hashes of a table: seeded, so that keys made of a client's input cannot be made to collide.
pub(crate) type HashState = foldhash::quality::RandomState;

#[cfg(feature = "redis")]
pub(crate) type RedisConnection = redis::aio::MultiplexedConnection;

/// Reads the clock that keeps running while the machine sleeps, in nanoseconds.
#[cfg(unix)]
pub(crate) fn now() -> u64 {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;

    let time = clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

/// Reads the monotonic clock, in nanoseconds.
#[cfg(not(unix))]
pub(crate) fn now() -> u64 {
    use std::sync::LazyLock;
    use std::time::Instant;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    // At least a second, so that moments shortly before now can be expressed.
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX) + 1_000_000_000
}

/// Reads the wall clock, in microseconds since 1970.
pub(crate) fn unix_micros() -> u64 {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since_epoch.as_micros()).unwrap_or(0)
}

/// Fills `bytes` with random bytes, or panics, because tokens without randomness could collide.
pub(crate) fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gave no random bytes");
}

#[cfg(unix)]
pub(crate) fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
pub(crate) fn host() -> String {
    let name = std::env::var("COMPUTERNAME").or_else(|_| std::env::var("HOSTNAME"));
    name.unwrap_or_else(|_| "unknown".to_owned())
}

pub(crate) fn process_id() -> u32 {
    std::process::id()
}

/// Starts a thread that runs `main` in a runtime of its own. What `main` has spawned ends with it.
pub(crate) fn thread(
    name: &str,
    main: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || runtime.block_on(main))
        .map(drop)
}

/// Returns the runtime of the calling task; `None` outside of a runtime.
#[inline]
pub(crate) fn runtime() -> Option<Handle> {
    Handle::try_current().ok()
}

/// Returns the runtime of the calling task, or panics outside of a runtime.
pub(crate) fn current_runtime() -> Handle {
    Handle::current()
}

/// Returns the task that runs; `None` outside of a task.
pub(crate) fn task_id() -> Option<TaskId> {
    tokio::task::try_id()
}

#[inline]
pub(crate) fn spawn<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}

#[cfg(feature = "redis")]
pub(crate) fn join_set<T: Send + 'static>() -> JoinSet<T> {
    JoinSet::new()
}

#[inline]
pub(crate) fn sleep(span: Duration) -> tokio::time::Sleep {
    tokio::time::sleep(span)
}

#[inline]
pub(crate) fn timeout<F: Future>(span: Duration, future: F) -> tokio::time::Timeout<F> {
    tokio::time::timeout(span, future)
}

/// Connects to a server. The driver of the connection runs in the runtime of the calling task.
#[cfg(feature = "redis")]
pub(crate) async fn connect(
    client: &redis::Client,
    config: &redis::AsyncConnectionConfig,
) -> redis::RedisResult<RedisConnection> {
    client
        .get_multiplexed_async_connection_with_config(config)
        .await
}

/// Connects to a server of PostgreSQL. The caller drives the connection.
#[cfg(feature = "postgres")]
pub(crate) async fn connect_postgres<T: MakeTlsConnect<tokio_postgres::Socket>>(
    config: &tokio_postgres::Config,
    tls: T,
) -> Result<
    (
        tokio_postgres::Client,
        tokio_postgres::Connection<tokio_postgres::Socket, T::Stream>,
    ),
    tokio_postgres::Error,
> {
    config.connect(tls).await
}
