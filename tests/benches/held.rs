//! Measures the CPU time and the memory of many held locks that one keeper renews.

use std::process;
use std::time::{Duration, Instant};

use lock_core::LockManager;
use lock_tests::RedisServer;

use crate::machine::{cpu_seconds, resident_bytes};

/// The time of the measurement, long enough to renew every lock twice.
const WATCHED: Duration = Duration::from_secs(25);

pub(crate) fn run(server: &RedisServer) {
    let count =
        std::env::var("HELD").map_or(100_000, |count| count.parse().expect("HELD is a number"));
    crate::machine::runtime().block_on(hold(server, count));
}

async fn hold(server: &RedisServer, count: usize) {
    let locks = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    drop(locks.lock("warm").acquire().await);
    let before = resident_bytes(process::id());
    let mut guards = Vec::with_capacity(count);
    while guards.len() < count {
        let some = (0..100.min(count - guards.len())).map(|part| {
            tokio::spawn(
                locks
                    .lock(format!("account:{:08}", guards.len() + part))
                    .ttl(Duration::from_secs(30))
                    .acquire(),
            )
        });
        for task in some.collect::<Vec<_>>() {
            guards.push(task.await.expect("a task").expect("a lock"));
        }
    }
    let bytes = (resident_bytes(process::id()) - before) / count;
    let calls = renewals(server);
    let (cpu, clock) = (cpu_seconds(process::id()), Instant::now());
    tokio::time::sleep(WATCHED).await;
    let watched = clock.elapsed().as_secs_f64();
    let cpu = (cpu_seconds(process::id()) - cpu) / watched;
    let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    println!("\n| held locks, ttl 30 s | CPU of the process | memory each | scripts/s | lost |");
    println!("| --- | --- | --- | --- | --- |");
    println!(
        "| {count} | {:.1} % of a core | {bytes} bytes | {:.0} | {lost} |",
        cpu * 100.0,
        (renewals(server) - calls) as f64 / watched
    );
    assert_eq!(lost, 0, "every lock is renewed in time");
}

fn renewals(server: &RedisServer) -> u64 {
    server.commandstats().get("evalsha").copied().unwrap_or(0)
}
