//! Measures acquire and release of a free key against the two raw commands that do the least.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lock_core::LockManager;
use lock_core::redis1::aio::MultiplexedConnection;
use lock_core::redis1::io::tcp::TcpSettings;
use lock_core::redis1::{
    AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, Script,
};
use lock_tests::RedisServer;

use crate::bars::Bars;
use crate::machine::{self, median};

const ROUNDS: usize = 40;
/// The length of a turn, so short that other load on the machine affects both sides alike.
const TURN: Duration = Duration::from_millis(50);

/// The time of a caller between two locks, in which the runtime does other things.
const THINK: Duration = Duration::from_micros(100);

/// Runs the benchmark. `client` and `apart` are the cores of this process and of the server.
pub(crate) fn run(server: &RedisServer, [client, apart]: [usize; 2], bars: &mut Bars) {
    println!("| | raw µs/pair | kit µs/pair | kit ÷ raw (median of {ROUNDS}) | throughput × raw |");
    println!("| --- | --- | --- | --- | --- |");
    let ratio = compare("1 task", server, 1, Way::Awaited);
    bars.at_most("a free pair ÷ raw, 1 task", ratio, 1.10);
    let ratio = compare("64 tasks", server, 64, Way::Awaited);
    bars.at_least("throughput × raw, 64 tasks", 1.0 / ratio, 1.2);
    let ratio = compare("released in the background", server, 1, Way::Background);
    bars.at_most("background ÷ raw, in a loop", ratio, 0.65);
    let ratio = compare(
        "the same, 100 µs apart",
        server,
        1,
        Way::BackgroundAfterThought,
    );
    bars.at_most("background ÷ raw, 100 µs apart", ratio, 0.55);
    // On one core, client and server run one after the other, so that the work of both counts.
    machine::pin_server(server, client);
    let ratio = compare(
        "1 task, client and server on one core",
        server,
        1,
        Way::Awaited,
    );
    bars.at_most("a free pair ÷ raw, on one core", ratio, 1.15);
    machine::pin_server(server, apart);
}

/// The way in which the kit's lock is released. The raw release is always awaited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Awaited,
    Background,
    BackgroundAfterThought,
}

impl Way {
    fn think(self) -> Duration {
        match self {
            Way::BackgroundAfterThought => THINK,
            Way::Awaited | Way::Background => Duration::ZERO,
        }
    }
}

fn compare(what: &str, server: &RedisServer, tasks: usize, way: Way) -> f64 {
    crate::machine::runtime().block_on(compare_here(what, server, tasks, way))
}

async fn compare_here(what: &str, server: &RedisServer, tasks: usize, way: Way) -> f64 {
    let raw = raw_connection(server).await;
    let locks = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    // Both sides load their scripts and make their connections before the first turn.
    raw_turn(&raw, tasks, way).await;
    kit_turn(&locks, tasks, way).await;
    let (mut raw_pairs, mut kit_pairs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let raw_pair = raw_turn(&raw, tasks, way).await;
        let kit_pair = kit_turn(&locks, tasks, way).await;
        ratios.push(kit_pair / raw_pair);
        raw_pairs.push(raw_pair);
        kit_pairs.push(kit_pair);
    }
    let ratio = median(ratios);
    println!(
        "| {what} | {:.1} | {:.1} | {ratio:.2} | {:.2} |",
        median(raw_pairs),
        median(kit_pairs),
        1.0 / ratio
    );
    ratio
}

/// Returns the microseconds of each pair, over all tasks together.
async fn raw_turn(connection: &MultiplexedConnection, tasks: usize, way: Way) -> f64 {
    turn(tasks, way, |task, mut caller| {
        let mut connection = connection.clone();
        async move {
            let key = format!("lockkit:raw:{task}");
            while let Some(start) = caller.begins() {
                raw_pair(&mut connection, &key, caller.pairs as usize).await;
                caller.has_it(start).await;
            }
            caller
        }
    })
    .await
}

/// Runs the least possible lock.
///
/// A key is set if it is free, and deleted if it still has the token.
pub(crate) async fn raw_pair(connection: &mut MultiplexedConnection, key: &str, number: usize) {
    let token = raw_acquire(connection, key, number).await;
    raw_release(connection, key, &token).await;
}

/// Acquires the raw lock and returns the token.
pub(crate) async fn raw_acquire(
    connection: &mut MultiplexedConnection,
    key: &str,
    number: usize,
) -> String {
    let token = format!("0123456789abcdef/{number:032x}");
    let mut set = lock_core::redis1::cmd("SET");
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

async fn kit_turn(locks: &LockManager, tasks: usize, way: Way) -> f64 {
    turn(tasks, way, |task, mut caller| {
        let locks = locks.clone();
        async move {
            let key = format!("kit:{task}");
            while let Some(start) = caller.begins() {
                let guard = locks.lock(key.as_str()).acquire().await.expect("acquire");
                match way {
                    Way::Awaited => guard.release().await.expect("release"),
                    Way::Background | Way::BackgroundAfterThought => guard.release_in_background(),
                }
                caller.has_it(start).await;
            }
            caller
        }
    })
    .await
}

async fn turn<F>(tasks: usize, way: Way, work: impl Fn(usize, Caller) -> F) -> f64
where
    F: Future<Output = Caller> + Send + 'static,
{
    let caller = Caller {
        end: Instant::now() + TURN,
        think: way.think(),
        pairs: 0,
        waited: Duration::ZERO,
    };
    let running: Vec<_> = (0..tasks)
        .map(|task| tokio::spawn(work(task, caller.clone())))
        .collect();
    let (mut pairs, mut waited) = (0, Duration::ZERO);
    for task in running {
        let caller = task.await.expect("a task that does not panic");
        pairs += caller.pairs;
        waited += caller.waited;
    }
    waited.as_secs_f64() * 1e6 / f64::from(pairs) / tasks as f64
}

/// A task that acquires and releases a lock again and again.
#[derive(Clone)]
struct Caller {
    end: Instant,
    think: Duration,
    pairs: u32,
    waited: Duration,
}

impl Caller {
    fn begins(&self) -> Option<Instant> {
        let now = Instant::now();
        (now < self.end).then_some(now)
    }

    async fn has_it(&mut self, start: Instant) {
        let now = Instant::now();
        self.pairs += 1;
        self.waited += now - start;
        // The runtime can do other things meanwhile.
        while now.elapsed() < self.think {
            tokio::task::yield_now().await;
        }
    }
}

/// Connects in the same way as the kit: RESP3, no delay, no timeouts of its own.
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
