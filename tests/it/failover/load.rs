//! Makes a load of two hundred acquisitions a second.
//!
//! Some owners keep their locks as long as possible.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockManager};
use lock_tests::wait;
use tokio::task::JoinHandle;
use tokio::time::{Instant as TokioInstant, MissedTickBehavior, interval_at, timeout};

use super::windows::Guarded;
use crate::steps::drains;

/// The ttl of every lock.
pub(crate) const TTL: Duration = Duration::from_millis(1200);
const TAKERS: u32 = 10;
/// The period of each taker. Ten takers make 200 acquisitions a second.
const PERIOD: Duration = Duration::from_millis(50);
/// The time between two writes of an owner that keeps its lock.
const BETWEEN_WRITES: Duration = Duration::from_millis(5);

/// Tasks that acquire and release locks until they are told to end.
pub(crate) struct Load {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    managers: Vec<LockManager>,
}

struct Shared {
    /// The guarded resources. Takers acquire and release all but the last, which an owner keeps.
    guarded: Vec<Guarded>,
    granted: AtomicU64,
    ending: AtomicBool,
}

impl Load {
    /// Starts a load on two managers, with keys that begin with `prefix`.
    pub(crate) async fn start(url: &str, prefix: &str) -> Load {
        Load::from_all([url, url], prefix).await
    }

    /// Starts a load as [`Load::start`] does, with a manager for each URL.
    ///
    /// The takers are shared out among the managers, and each manager has an owner that keeps its
    /// lock.
    pub(crate) async fn from_all<const N: usize>(urls: [&str; N], prefix: &str) -> Load {
        let keys = (0..6).map(|number| Guarded::new(format!("{prefix}{number}")));
        let shared = Arc::new(Shared {
            guarded: keys.collect(),
            granted: AtomicU64::new(0),
            ending: AtomicBool::new(false),
        });
        let mut managers = Vec::new();
        for url in urls {
            managers.push(LockManager::connect(url).await.expect("a manager"));
        }
        let mut tasks = Vec::new();
        for number in 0..TAKERS {
            let locks = managers[number as usize % N].clone();
            tasks.push(tokio::spawn(take(locks, Arc::clone(&shared), number)));
        }
        for locks in &managers {
            tasks.push(tokio::spawn(keep(locks.clone(), Arc::clone(&shared))));
        }
        Load {
            shared,
            tasks,
            managers,
        }
    }

    /// Returns how many locks were granted so far to takers.
    pub(crate) fn granted(&self) -> u64 {
        self.shared.granted.load(Ordering::SeqCst)
    }

    /// Returns the time of the first grant of a request made after `instant`.
    pub(crate) fn first_asked_after(&self, instant: Instant) -> Option<Instant> {
        let all = self.shared.guarded.iter();
        all.filter_map(|guarded| guarded.first_asked_after(instant))
            .min()
    }

    /// Ends all tasks and checks all windows. Returns the longest time for which two owners held one
    /// lock.
    pub(crate) async fn end(self) -> Duration {
        self.shared.ending.store(true, Ordering::SeqCst);
        for task in self.tasks {
            let task = timeout(wait::PATIENCE, task).await;
            task.expect("every task ends").expect("no panic");
        }
        for locks in self.managers {
            drains(&locks).await;
        }
        let both = self.shared.guarded.iter().map(Guarded::check);
        both.max().unwrap_or_default()
    }
}

impl Shared {
    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }
}

async fn take(locks: LockManager, shared: Arc<Shared>, number: u32) {
    let mut tick = interval_at(TokioInstant::now() + PERIOD * number / TAKERS, PERIOD);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let others = shared.guarded.len() - 1;
    for round in number as usize.. {
        tick.tick().await;
        if shared.is_ending() {
            return;
        }
        let guarded = &shared.guarded[round % others];
        let asked = Instant::now();
        let acquire = locks.lock(guarded.key()).ttl(TTL).acquire();
        let guard = match timeout(wait::PATIENCE, acquire).await.expect("no hang") {
            Ok(guard) => guard,
            Err(error) => {
                let expected = matches!(error.kind(), ErrorKind::Busy | ErrorKind::Unavailable);
                assert!(expected, "{error:?}");
                continue;
            }
        };
        let window = guarded.enter(asked, guard.fencing_token());
        for _ in 0..2 {
            let now = Instant::now();
            if guard.is_valid() {
                guarded.write(window, now);
            }
            tokio::task::yield_now().await;
        }
        shared.granted.fetch_add(1, Ordering::SeqCst);
        // The server may be gone by now. The lock is then released in the background.
        drop(
            timeout(wait::PATIENCE, guard.release())
                .await
                .expect("no hang"),
        );
    }
}

/// Holds the last key until it is lost, and takes it again. Several tasks always compete for it.
async fn keep(locks: LockManager, shared: Arc<Shared>) {
    let guarded = shared.guarded.last().expect("a key");
    while !shared.is_ending() {
        tokio::time::sleep(PERIOD).await;
        let asked = Instant::now();
        let acquire = locks.lock(guarded.key()).ttl(TTL).acquire();
        let Ok(guard) = timeout(wait::PATIENCE, acquire).await.expect("no hang") else {
            continue;
        };
        let window = guarded.enter(asked, guard.fencing_token());
        loop {
            let now = Instant::now();
            if !guard.is_valid() || shared.is_ending() {
                break;
            }
            guarded.write(window, now);
            tokio::time::sleep(BETWEEN_WRITES).await;
        }
    }
}
