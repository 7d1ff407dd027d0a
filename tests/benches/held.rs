//! Many held locks, renewed by one keeper: what they cost in CPU and memory.

use std::fs;
use std::time::{Duration, Instant};

use lock_core::LockManager;
use lock_tests::RedisServer;

/// Long enough for every lock to be renewed twice.
const WATCHED: Duration = Duration::from_secs(25);

pub(crate) fn run(server: &RedisServer) {
    let count =
        std::env::var("HELD").map_or(100_000, |count| count.parse().expect("HELD is a number"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(hold(server, count));
}

async fn hold(server: &RedisServer, count: usize) {
    let locks = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    drop(locks.lock("warm").acquire().await);
    let before = resident_bytes();
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
    let bytes = (resident_bytes() - before) / count;
    let calls = renewals(server);
    let (cpu, clock) = (cpu_seconds(), Instant::now());
    tokio::time::sleep(WATCHED).await;
    let watched = clock.elapsed().as_secs_f64();
    let cpu = (cpu_seconds() - cpu) / watched;
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

fn resident_bytes() -> usize {
    let status =
        fs::read_to_string("/proc/self/status").expect("a Linux machine: /proc/self/status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("VmRSS");
    let kilobytes: usize = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kilobytes * 1024
}

fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("a Linux machine: /proc/self/stat");
    let after_name = stat.rsplit_once(')').expect("a name in parentheses").1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: f64 =
        fields[11].parse::<f64>().expect("utime") + fields[12].parse::<f64>().expect("stime");
    // Linux counts in hundredths of a second wherever this runs.
    ticks / 100.0
}
