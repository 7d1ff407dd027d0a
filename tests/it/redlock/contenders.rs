//! Tests many contenders for one lock.
//!
//! As many servers as allowed stop and die meanwhile, and clients die while they hold the lock.
//!
//! One contender is inside at a time, tokens rise, and no key is left.
//!
//! `LOCK_TESTS_REDLOCK` sets the number of acquisitions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{ErrorKind, LockGuard, LockHandle, LockManager, Renew, Wait};
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::{Nodes, long};

const MANAGERS: usize = 4;
/// The tasks of each manager.
const TASKS: usize = 3;
/// The ttl of locks that servers may lose.
///
/// A server that has lost its data does not vote for the same time.
const MAX_TTL: Duration = Duration::from_secs(3);
/// One of this many attempts plays a client that dies as soon as it has the lock.
const MORTAL: u64 = 1_000;

/// The resource that one lock guards.
#[derive(Default)]
pub(super) struct Guarded {
    inside: AtomicBool,
    highest: AtomicU64,
    entered: AtomicU64,
    /// The lock of a client that died inside and released nothing.
    dead: Mutex<Option<LockHandle>>,
    died: AtomicU64,
}

impl Guarded {
    /// Enters and leaves the resource.
    pub(super) async fn enter(&self, guard: LockGuard) -> LockGuard {
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two are inside");
        let dead = self.dead.lock().expect("no panic").take();
        let counts = dead.is_some_and(|dead| dead.is_valid());
        assert!(!counts, "the lease of the dead client has not ended");
        let token = u64::from(guard.fencing_token());
        let before = self.highest.swap(token, Ordering::SeqCst);
        assert!(before < token, "{token} was granted after {before}");
        tokio::task::yield_now().await;
        assert!(self.inside.swap(false, Ordering::SeqCst), "two were inside");
        self.entered.fetch_add(1, Ordering::SeqCst);
        guard
    }

    /// Enters and releases nothing, so that servers keep the lock until it has run out.
    async fn die(&self, guard: LockGuard) {
        let guard = self.enter(guard).await;
        *self.dead.lock().expect("no panic") = Some(guard.handle());
        self.died.fetch_add(1, Ordering::SeqCst);
        guard.lost().await;
    }

    pub(super) fn entered(&self) -> u64 {
        self.entered.load(Ordering::SeqCst)
    }
}

pub(super) fn acquisitions() -> u64 {
    let told = std::env::var("LOCK_TESTS_REDLOCK");
    told.map_or(300, |it| it.parse().expect("a number"))
}

struct Crowd {
    guarded: Arc<Guarded>,
    over: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<Refused>>,
    managers: Vec<LockManager>,
    all: u64,
    /// The number of servers that were stopped or killed.
    crashes: AtomicU64,
}

/// Counts how often a task did not get the lock.
#[derive(Debug, Default)]
struct Refused {
    busy: u64,
    unavailable: u64,
    lost: u64,
}

impl Crowd {
    async fn start(nodes: &Nodes, ttl: Duration, max_ttl: Duration) -> Crowd {
        let mut crowd = Crowd {
            guarded: Arc::default(),
            over: Arc::default(),
            tasks: Vec::new(),
            managers: Vec::new(),
            all: acquisitions(),
            crashes: AtomicU64::new(0),
        };
        for _ in 0..MANAGERS {
            let builder = nodes.builder().max_ttl(max_ttl).default_ttl(ttl);
            // A stopped server must be detected while the others are still at work.
            let builder = builder.operation_timeout(Duration::from_secs(2));
            let locks = builder.connect().await.expect("a manager");
            for task in 0..TASKS {
                let wait = match task {
                    0 => Wait::None,
                    _ => Wait::For(Duration::from_secs(5)),
                };
                let (guarded, over) = (Arc::clone(&crowd.guarded), Arc::clone(&crowd.over));
                // With a long ttl no client dies, because the test would not see the end of its lock.
                let mortal = ttl == MAX_TTL;
                let task = contend(locks.clone(), guarded, wait, mortal, over);
                crowd.tasks.push(tokio::spawn(task));
            }
            crowd.managers.push(locks);
        }
        crowd
    }

    /// Waits until another tenth of the acquisitions is done, or a thousand of them.
    async fn goes_on(&self) {
        let enough = self.guarded.entered() + (self.all / 10).min(1_000);
        wait_long("the contenders go on", async || {
            self.guarded.entered() >= enough
        })
        .await;
    }

    fn is_done(&self) -> bool {
        self.guarded.entered() >= self.all
    }

    fn crash(&self, servers: u64) {
        self.crashes.fetch_add(servers, Ordering::SeqCst);
    }

    async fn end(self) {
        wait_long("all acquisitions are done", async || self.is_done()).await;
        self.over.store(true, Ordering::SeqCst);
        let mut all = Refused::default();
        for task in self.tasks {
            let refused = task.await.expect("no panic");
            all.busy += refused.busy;
            all.unavailable += refused.unavailable;
            all.lost += refused.lost;
        }
        println!(
            "{} acquisitions, {} servers stopped or killed, {} clients died; {all:?}",
            self.guarded.entered(),
            self.crashes.load(Ordering::SeqCst),
            self.guarded.died.load(Ordering::SeqCst)
        );
        for locks in self.managers {
            let left = locks.drain(wait::PATIENCE).await;
            assert_eq!((left.held(), left.releasing()), (0, 0));
        }
    }
}

/// Returns the patience, because many contenders may keep the machine busy for a while.
pub(super) fn patience() -> Duration {
    wait::PATIENCE * (3 + u32::try_from(acquisitions() / 1_000).expect("small"))
}

/// Waits as [`wait::eventually`] does, for a state that may take as long as the test is told to run.
pub(super) async fn wait_long(what: &str, mut state: impl AsyncFnMut() -> bool) {
    let waited = timeout(patience(), async {
        while !state().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let waited = waited.await;
    waited.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

async fn contend(
    locks: LockManager,
    guarded: Arc<Guarded>,
    wait: Wait,
    mortal: bool,
    over: Arc<AtomicBool>,
) -> Refused {
    let mut refused = Refused::default();
    let mut attempts = 0;
    while !over.load(Ordering::SeqCst) {
        attempts += 1;
        let dies = mortal && attempts % MORTAL == 50;
        // A dead client does not renew its lock.
        let renew = if dies { Renew::Off } else { Renew::Auto };
        let acquire = locks.lock("k").wait(wait).renew(renew).acquire();
        match timeout(wait::PATIENCE, acquire).await.expect("no hang") {
            Ok(guard) if dies => {
                let over = timeout(wait::PATIENCE, guarded.die(guard));
                over.await.expect("the lease runs out");
            }
            Ok(guard) => {
                let guard = guarded.enter(guard).await;
                let release = timeout(wait::PATIENCE, guard.release());
                match release.await.expect("no hang") {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::Unavailable => {
                        refused.unavailable += 1
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Lost, "{error:?}");
                        refused.lost += 1;
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::Busy => refused.busy += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
                refused.unavailable += 1;
            }
        }
        // A task that is refused at once leaves the machine to the others for a moment.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    refused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_many_contenders_is_inside_while_servers_stop_and_continue() {
    needs!(redis);
    let nodes = Nodes::start(5);
    // No lease ends by itself during this test.
    let crowd = Crowd::start(&nodes, long(), long()).await;
    for first in (0..5).cycle() {
        if crowd.is_done() {
            break;
        }
        crowd.goes_on().await;
        crowd.crash(2);
        let stopped = [&nodes.0[first], &nodes.0[(first + 2) % 5]];
        stopped.iter().for_each(|node| node.stop());
        crowd.goes_on().await;
        stopped.iter().for_each(|node| node.cont());
    }
    crowd.end().await;
    nodes.are_left_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_many_contenders_is_inside_while_servers_die_and_lose_their_data() {
    needs!(redis);
    let nodes = Nodes::start(5);
    let crowd = Crowd::start(&nodes, MAX_TTL, MAX_TTL).await;
    for dies in (0..5).cycle() {
        if crowd.is_done() {
            break;
        }
        let stops = (dies + 1) % 5;
        crowd.goes_on().await;
        crowd.crash(2);
        nodes.0[dies].kill();
        crowd.goes_on().await;
        // While that server does not vote yet, another one may be missing.
        nodes.0[stops].stop();
        nodes.0[dies].start_again();
        crowd.goes_on().await;
        nodes.0[stops].cont();
        wait::eventually("the server votes again", async || {
            nodes.0[dies].cli(&["HGET", "lockkit:!r", "opens"]) == "0"
        })
        .await;
    }
    crowd.end().await;
    nodes.are_left_clean().await;
}
