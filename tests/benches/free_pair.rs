//! A free key, acquired and released, against the two raw commands that do the least.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lock_core::LockManager;
use lock_core::redis::aio::MultiplexedConnection;
use lock_core::redis::io::tcp::TcpSettings;
use lock_core::redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, Script,
};
use lock_tests::RedisServer;

use crate::machine::median;

const ROUNDS: usize = 40;
/// Short turns, so that whatever else the machine does hits both alike.
const TURN: Duration = Duration::from_millis(50);

pub(crate) fn run(server: &RedisServer) {
    println!(
        "| tasks | raw µs/pair | kit µs/pair | kit ÷ raw (median of {ROUNDS}) | throughput × raw |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for tasks in [1, 64] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(compare(server, tasks));
    }
}

async fn compare(server: &RedisServer, tasks: usize) {
    let raw = raw_connection(server).await;
    let locks = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    // Both know their scripts and have their connections before the first turn.
    raw_turn(&raw, tasks).await;
    kit_turn(&locks, tasks).await;
    let (mut raw_pairs, mut kit_pairs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let raw_pair = raw_turn(&raw, tasks).await;
        let kit_pair = kit_turn(&locks, tasks).await;
        ratios.push(kit_pair / raw_pair);
        raw_pairs.push(raw_pair);
        kit_pairs.push(kit_pair);
    }
    let ratio = median(ratios);
    println!(
        "| {tasks} | {:.1} | {:.1} | {ratio:.2} | {:.2} |",
        median(raw_pairs),
        median(kit_pairs),
        1.0 / ratio
    );
}

/// Microseconds of the clock for each pair, all tasks together.
async fn raw_turn(connection: &MultiplexedConnection, tasks: usize) -> f64 {
    turn(tasks, |task, end| {
        let mut connection = connection.clone();
        async move {
            let key = format!("lock:raw:{task}");
            let mut pairs = 0;
            while Instant::now() < end {
                raw_pair(&mut connection, &key, pairs as usize).await;
                pairs += 1;
            }
            pairs
        }
    })
    .await
}

/// The least that a lock can be: a key that is set if it is free, and deleted if it is still ours.
pub(crate) async fn raw_pair(connection: &mut MultiplexedConnection, key: &str, number: usize) {
    let token = raw_acquire(connection, key, number).await;
    raw_release(connection, key, &token).await;
}

/// Answers the token.
pub(crate) async fn raw_acquire(
    connection: &mut MultiplexedConnection,
    key: &str,
    number: usize,
) -> String {
    let token = format!("0123456789abcdef/{number:032x}");
    let mut set = lock_core::redis::cmd("SET");
    set.arg(key).arg(&token).arg("NX").arg("PX").arg(30_000);
    let set: Option<String> = set.query_async(connection).await.expect("SET");
    assert!(set.is_some());
    token
}

pub(crate) async fn raw_release(connection: &mut MultiplexedConnection, key: &str, token: &str) {
    static RELEASE: LazyLock<Script> = LazyLock::new(|| {
        Script::new(
            "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end",
        )
    });
    let mut release = RELEASE.key(key);
    let release = release.arg(token).invoke_async(connection);
    let deleted: i64 = release.await.expect("EVALSHA");
    assert_eq!(deleted, 1);
}

async fn kit_turn(locks: &LockManager, tasks: usize) -> f64 {
    turn(tasks, |task, end| {
        let locks = locks.clone();
        async move {
            let key = format!("kit:{task}");
            let mut pairs = 0;
            while Instant::now() < end {
                let guard = locks.lock(key.as_str()).acquire().await.expect("acquire");
                guard.release().await.expect("release");
                pairs += 1;
            }
            pairs
        }
    })
    .await
}

async fn turn<F>(tasks: usize, work: impl Fn(usize, Instant) -> F) -> f64
where
    F: Future<Output = u32> + Send + 'static,
{
    let start = Instant::now();
    let running: Vec<_> = (0..tasks)
        .map(|task| tokio::spawn(work(task, start + TURN)))
        .collect();
    let mut pairs = 0;
    for task in running {
        pairs += task.await.expect("a task that does not panic");
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(pairs)
}

/// The same kind of connection as the kit's: RESP3, no delay, no timeouts of its own.
pub(crate) async fn raw_connection(server: &RedisServer) -> MultiplexedConnection {
    connect_raw(&server.url()).await
}

pub(crate) async fn connect_raw(url: &str) -> MultiplexedConnection {
    let info: ConnectionInfo = url.into_connection_info().expect("a URL");
    let settings = info
        .redis_settings()
        .clone()
        .set_protocol(ProtocolVersion::RESP3);
    let info = info
        .set_redis_settings(settings)
        .set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None)
        .set_pipeline_buffer_size(1024);
    let client = Client::open(info).expect("a client");
    client
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .expect("a connection")
}
