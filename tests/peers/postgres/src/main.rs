//! Takes and frees locks of the crate distributed-lock: `lock-peer <URL>`.
//!
//! Each line of the input is a number of tasks and a time in milliseconds. The answer is the time of a pair over all tasks
//! together, in microseconds. Each task has a lock of its own.

use std::time::{Duration, Instant};

use distributed_lock_core::traits::{DistributedLock, LockHandle, LockProvider};
use distributed_lock_postgres::PostgresLockProvider;
use sqlx::postgres::PgPoolOptions;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

/// The connections, as many as the other ways that need one for as long as a lock is held.
const CONNECTIONS: u32 = 16;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let url = std::env::args().nth(1).expect("a URL");
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS);
    let pool = pool.connect(&url).await.expect("a server");
    let provider = PostgresLockProvider::builder().pool(pool);
    let provider = provider.build().await.expect("a provider");
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await.expect("a line") {
        let (tasks, millis) = line.split_once(' ').expect("two numbers");
        let tasks: usize = tasks.parse().expect("a number of tasks");
        let millis = millis.parse().expect("milliseconds");
        let begin = Instant::now();
        let end = begin + Duration::from_millis(millis);
        let running: Vec<_> = (0..tasks)
            .map(|task| tokio::spawn(pairs(provider.create_lock(&format!("pair:{task}")), end)))
            .collect();
        let mut sum = 0;
        for task in running {
            sum += task.await.expect("no panic");
        }
        println!("{}", begin.elapsed().as_secs_f64() * 1e6 / f64::from(sum));
    }
}

async fn pairs(lock: impl DistributedLock, end: Instant) -> u32 {
    let mut pairs = 0;
    while Instant::now() < end {
        let handle = lock.acquire(None).await.expect("free");
        handle.release().await.expect("held");
        pairs += 1;
    }
    pairs
}
