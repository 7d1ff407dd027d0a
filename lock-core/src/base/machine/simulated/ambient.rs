//! The functions of the real machine, answered by the world of this thread.

use std::future::Future;
use std::io;
#[cfg(feature = "postgres")]
use std::time::Duration;

#[cfg(feature = "postgres")]
use tokio_postgres::config::Host;

#[cfg(feature = "postgres")]
use super::Stream;
use super::{living_world, world};

pub(crate) use super::tasks::{JoinHandle, JoinSet};
pub(crate) use super::timers::{sleep, timeout};
pub(crate) use super::{Handle, Id, now};

/// Has no seed, so that a table has the same order in each run.
pub(crate) type HashState = foldhash::quality::FixedState;

pub(crate) fn unix_micros() -> u64 {
    world().unix_micros()
}

pub(crate) fn fill(bytes: &mut [u8]) {
    world().fill(bytes);
}

pub(crate) fn host() -> String {
    world().host()
}

pub(crate) fn process_id() -> u32 {
    world().process_id()
}

pub(crate) fn note(step: impl Fn() -> String) {
    world().note(&step);
}

pub(crate) fn thread(
    name: &str,
    main: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    world().thread(name, Box::pin(main))
}

pub(crate) fn runtime() -> Option<Handle> {
    living_world()?.runtime().map(Handle)
}

pub(crate) fn current_runtime() -> Handle {
    runtime().expect("the calling task has a runtime")
}

/// The number of a task.
pub(crate) type TaskId = u64;

pub(crate) fn task_id() -> Option<TaskId> {
    living_world()?.task()
}

pub(crate) fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    current_runtime().spawn(future)
}

pub(crate) fn join_set<T: Send + 'static>() -> JoinSet<T> {
    JoinSet::default()
}

/// A connection whose driver ends with it, as that of the redis crate does.
pub(crate) struct RedisConnection {
    redis: redis::aio::MultiplexedConnection,
    driver: JoinHandle<()>,
}

impl std::ops::Deref for RedisConnection {
    type Target = redis::aio::MultiplexedConnection;

    fn deref(&self) -> &Self::Target {
        &self.redis
    }
}

impl Drop for RedisConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

pub(crate) async fn connect(
    client: &redis::Client,
    config: &redis::AsyncConnectionConfig,
) -> redis::RedisResult<RedisConnection> {
    let info = client.get_connection_info();
    let stream = super::connect(&info.addr().to_string()).await?;
    let (redis, driver) = redis::aio::MultiplexedConnection::new_with_config(
        info.redis_settings(),
        stream,
        config.clone(),
    )
    .await?;
    Ok(RedisConnection {
        redis,
        driver: spawn(driver),
    })
}

/// Connects without TLS to the first server of the settings.
#[cfg(feature = "postgres")]
pub(crate) async fn connect_postgres<T>(
    config: &tokio_postgres::Config,
    _: T,
) -> Result<
    (
        tokio_postgres::Client,
        tokio_postgres::Connection<Box<dyn Stream>, tokio_postgres::tls::NoTlsStream>,
    ),
    tokio_postgres::Error,
> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        _ => String::new(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let longest = config
        .get_connect_timeout()
        .copied()
        .unwrap_or(Duration::MAX);
    let connected = timeout(longest, super::connect(&format!("{host}:{port}"))).await;
    // A stream that has ended stands for a connection that was not made.
    let stream = connected.ok().and_then(Result::ok);
    let stream = stream.unwrap_or_else(|| Box::new(tokio::io::empty()));
    config.connect_raw(stream, tokio_postgres::NoTls).await
}
