//! The work of each part with the kit.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockManager, LockRequest, Wait};
use lock_tests::{ChildProcess, RedisServer, wait};

use crate::{KILLED, Part, Taken, rounds};

/// For how long a task holds its lock, as in `peer.js`.
const HOLD: Duration = Duration::from_millis(5);
const LEASE: Duration = Duration::from_secs(2);
const PERMITS: u32 = 5;

async fn manager(url: &str) -> LockManager {
    LockManager::connect(url).await.expect("a manager")
}

fn permit(locks: &LockManager) -> LockRequest {
    locks.lock("exports").permits(PERMITS).ttl(LEASE)
}

fn request(part: Part, locks: &LockManager, number: usize) -> LockRequest {
    match part {
        Part::Semaphore => permit(locks),
        Part::Readers if number < 16 => locks.lock("catalogue").read().ttl(LEASE),
        Part::Readers => locks.lock("catalogue").ttl(LEASE),
        Part::Pairs => {
            let keys = [
                format!("account:{}", number % 4),
                format!("account:{}", 4 + number % 3),
            ];
            locks.lock_all(keys).ttl(LEASE)
        }
    }
}

pub(crate) async fn work(part: Part, server: &RedisServer) -> Taken {
    let locks = manager(&server.url()).await;
    let longest = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = (0..part.tasks())
        .map(|number| {
            let locks = locks.clone();
            let longest = Arc::clone(&longest);
            tokio::spawn(async move {
                for _ in 0..rounds() {
                    let start = Instant::now();
                    let request = request(part, &locks, number).wait(Wait::Forever);
                    let guard = request.acquire().await.expect("a turn");
                    let waited = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
                    longest.fetch_max(waited, Ordering::Relaxed);
                    hold_for_a_while().await;
                    if let Err(error) = guard.release().await {
                        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    Taken {
        took: start.elapsed(),
        longest: Duration::from_micros(longest.load(Ordering::Relaxed)),
    }
}

/// Holds for as long as the peer does. A thread is as exact as a timer of Node, and a timer of tokio is up to a
/// millisecond late.
async fn hold_for_a_while() {
    let slept = tokio::task::spawn_blocking(|| std::thread::sleep(HOLD)).await;
    slept.expect("no panic");
}

/// Takes a permit and keeps it until the process is killed.
pub(crate) async fn hold(url: &str) {
    let locks = manager(url).await;
    let _guard = permit(&locks)
        .wait(Wait::Forever)
        .acquire()
        .await
        .expect("a permit");
    println!("\nholding");
    std::future::pending::<()>().await;
}

/// Kills processes that hold permits. Returns how many permits are missing when their leases have run out.
pub(crate) async fn missing_permits(server: &RedisServer) -> u32 {
    for _ in 0..KILLED {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args(["hold", &server.url()]);
        let mut process = ChildProcess::spawn(command);
        let holding = process.line(wait::PATIENCE, |line| line == "holding");
        assert!(holding.is_some(), "{}", process.output());
        process.kill();
    }
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    let locks = manager(&server.url()).await;
    let mut guards = Vec::new();
    while let Some(guard) = permit(&locks).try_acquire().await.expect("an answer") {
        guards.push(guard);
    }
    PERMITS - u32::try_from(guards.len()).expect("few")
}
