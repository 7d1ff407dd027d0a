//! Two hundred acquisitions a second, and owners that keep what they have for as long as they may.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockManager};
use lock_tests::wait;
use tokio::task::JoinHandle;
use tokio::time::{Instant as TokioInstant, MissedTickBehavior, interval_at, timeout};

use super::windows::Guarded;

/// Of every lock.
pub(crate) const TTL: Duration = Duration::from_millis(1200);
const TAKERS: u32 = 10;
/// Of each taker: ten of them make 200 a second.
const PERIOD: Duration = Duration::from_millis(50);
/// Between two writes of an owner that keeps its lock.
const BETWEEN_WRITES: Duration = Duration::from_millis(5);

/// Tasks that take and give back, until told to end.
pub(crate) struct Load {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    managers: Vec<LockManager>,
}

struct Shared {
    /// Taken and given back again; the last one is kept.
    guarded: Vec<Guarded>,
    granted: AtomicU64,
    ending: AtomicBool,
}

impl Load {
    /// On two managers, and keys that begin with `prefix`.
    pub(crate) async fn start(url: &str, prefix: &str) -> Load {
        Load::from_all([url, url], prefix).await
    }

    /// As [`Load::start`], with a manager for each URL: the takers are shared out, and each has an
    /// owner that keeps.
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

    /// How many locks were taken so far, to be given back.
    pub(crate) fn granted(&self) -> u64 {
        self.shared.granted.load(Ordering::SeqCst)
    }

    /// When the first lock was granted to somebody who asked after `instant`.
    pub(crate) async fn granted_after(&self, instant: Instant) -> Instant {
        let first = || {
            let all = self.shared.guarded.iter();
            all.filter_map(|guarded| guarded.first_asked_after(instant))
                .min()
        };
        wait::eventually("a lock is granted", async || first().is_some()).await;
        first().expect("a grant")
    }

    /// Everybody comes to an end, and all that happened was right. Answers for how long two held one
    /// lock at most.
    pub(crate) async fn end(self) -> Duration {
        self.shared.ending.store(true, Ordering::SeqCst);
        for task in self.tasks {
            let task = timeout(wait::PATIENCE, task).await;
            task.expect("nobody hangs").expect("no panic");
        }
        for locks in self.managers {
            let left = locks.drain(wait::PATIENCE).await;
            assert_eq!((left.held(), left.releasing()), (0, 0));
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
        // The server may be gone by now: then it is given back in the background.
        drop(
            timeout(wait::PATIENCE, guard.release())
                .await
                .expect("no hang"),
        );
    }
}

/// Holds the last key until it is lost, and takes it again: several of them are always at it.
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
