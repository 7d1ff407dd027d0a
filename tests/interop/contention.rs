//! Counts under the lock, on both sides at once, by steps that are not atomic.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lock_core::redis1::aio::MultiplexedConnection;
use lock_core::redis1::{Client, RedisError, cmd};
use lock_core::{LockManager, Wait};
use lock_tests::RedisServer;

use crate::Failure;
use crate::foreign::Foreign;
use crate::stage::{Stage, ensure, request};

/// The rounds of each side while one task of the kit asks, and keeps the key free for a moment.
pub(crate) const ROUNDS: u64 = 1000;
/// The rounds of the client while tasks of the kit queue, so that the key is free only in the gaps of `Interop::On`.
const ROUNDS_IN_GAPS: u64 = 20;
/// The rounds of the client for one request.
const BATCH: u64 = 20;
const TASKS: u64 = 4;
const TTL: Duration = Duration::from_secs(10);
/// The time between the two steps of an increment, on both sides.
const BETWEEN: Duration = Duration::from_millis(1);
/// The time between two rounds of a task that is alone. The clients ask every 3 ms.
const PAUSE: Duration = Duration::from_millis(2);

/// The rounds, each of which is an increment of the counter.
pub(crate) struct Counted {
    client: u64,
    kit: u64,
    /// The rounds of the kit for which it had to wait.
    contended: u64,
    in_gaps: u64,
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted {
            client,
            kit,
            contended,
            in_gaps,
        } = self;
        write!(
            f,
            "0 lost updates in {client} rounds of the client and {kit} of the kit, which waited in {contended}; and in \
             {in_gaps} rounds of the client in the gaps of the kit"
        )
    }
}

pub(crate) async fn counted(stage: &mut Stage) -> Result<Counted, Failure> {
    let Stage {
        server,
        locks,
        foreign,
        ..
    } = stage;
    let (client, kit, contended) = together(server, locks, foreign, 1, ROUNDS).await?;
    ensure(
        contended > ROUNDS / 10,
        &format!("the two sides hardly meet: the kit waited in {contended} of {kit} rounds"),
    )?;
    let (in_gaps, _, _) = together(server, locks, foreign, TASKS, ROUNDS_IN_GAPS).await?;
    Ok(Counted {
        client,
        kit,
        contended,
        in_gaps,
    })
}

/// Counts by tasks of the kit and by the client, until each side has done at least `rounds`.
///
/// Returns the rounds of the client, those of the kit, and in how many of them the kit had to wait.
pub(crate) async fn together(
    server: &RedisServer,
    locks: &LockManager,
    foreign: &mut Foreign,
    tasks: u64,
    rounds: u64,
) -> Result<(u64, u64, u64), Failure> {
    server.cli(&["DEL", "counter"]);
    let client = Client::open(server.url()).map_err(|error| error.to_string())?;
    let over = Arc::new(AtomicBool::new(false));
    let left = Arc::new(AtomicU64::new(rounds));
    let mut counting = Vec::new();
    for _ in 0..tasks {
        let connection = client.get_multiplexed_async_connection().await;
        let task = Task {
            locks: locks.clone(),
            connection: connection.map_err(|error| error.to_string())?,
            over: Arc::clone(&over),
            left: Arc::clone(&left),
            pause: if tasks == 1 { PAUSE } else { Duration::ZERO },
        };
        counting.push(tokio::spawn(task.count()));
    }
    let of_client = count_beside(foreign, rounds, &left).await;
    over.store(true, Ordering::SeqCst);
    let (mut kit, mut contended) = (0, 0);
    for task in counting {
        let (of_task, waited) = task.await.expect("no panic")?;
        kit += of_task;
        contended += waited;
    }
    let of_client = of_client?;
    let wanted = kit + of_client;
    let counter = server.cli(&["GET", "counter"]);
    ensure(
        counter == wanted.to_string(),
        &format!("updates are lost: the counter is {counter} after {wanted} rounds"),
    )?;
    Ok((of_client, kit, contended))
}

/// Counts by the client until it has counted `rounds` and the tasks have counted theirs.
async fn count_beside(
    foreign: &mut Foreign,
    rounds: u64,
    left: &AtomicU64,
) -> Result<u64, Failure> {
    let mut done = 0;
    while done < rounds || left.load(Ordering::SeqCst) > 0 {
        foreign.send(&format!("count {BATCH}"))?;
        foreign.counted().await?;
        done += BATCH;
    }
    Ok(done)
}

/// One task of the kit.
struct Task {
    locks: LockManager,
    connection: MultiplexedConnection,
    over: Arc<AtomicBool>,
    /// The rounds that the tasks still have to do.
    left: Arc<AtomicU64>,
    pause: Duration,
}

impl Task {
    /// Returns the number of rounds, and in how many of them the task had to wait.
    async fn count(mut self) -> Result<(u64, u64), Failure> {
        let (mut done, mut waited) = (0, 0);
        while !self.over.load(Ordering::SeqCst) {
            let guard = match request(&self.locks, TTL).try_acquire().await {
                Ok(None) => {
                    waited += 1;
                    let waiting = request(&self.locks, TTL).wait(Wait::Forever);
                    waiting.acquire().await
                }
                Ok(Some(guard)) => Ok(guard),
                Err(error) => Err(error),
            };
            let guard = guard.map_err(|error| format!("the kit does not get the lock: {error}"))?;
            let incremented = self.increment().await;
            incremented.map_err(|error| format!("the counter fails: {error}"))?;
            let released = guard.release().await;
            released.map_err(|error| format!("the kit loses its lock: {error}"))?;
            done += 1;
            let fewer = |left: u64| left.checked_sub(1);
            let _ = self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
            tokio::time::sleep(self.pause).await;
        }
        Ok((done, waited))
    }

    /// Reads the counter and writes it, in two steps.
    async fn increment(&mut self) -> Result<(), RedisError> {
        let counter: Option<u64> = cmd("GET")
            .arg("counter")
            .query_async(&mut self.connection)
            .await?;
        let next = counter.unwrap_or(0) + 1;
        // Without the lock, the other side would write in between.
        tokio::time::sleep(BETWEEN).await;
        cmd("SET")
            .arg("counter")
            .arg(next)
            .query_async(&mut self.connection)
            .await
    }
}
