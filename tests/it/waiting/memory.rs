//! Measures the cost of many waiters, while they wait and after they have gone.
//!
//! There are a thousand waiters for one key, or five thousand keys with a waiter each.
//!
//! The test runs in a process of its own, because the allocator counts for the whole process.

use std::alloc::System;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_core::{LockGuard, LockManager, LockRequest, Renew, Wait};
use lock_tests::{RedisServer, needs, wait};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::time::timeout;

use super::{keys, long, manager, process, server_of_parent};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns the bytes that are allocated and not freed.
fn allocated() -> usize {
    let stats = MEMORY.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Returns how often this process has allocated memory. Each question to the store does it several times.
fn allocations() -> usize {
    MEMORY.stats().allocations
}

/// The waiters, and the number of their polls.
struct Crowd {
    waiters: Vec<tokio::task::JoinHandle<()>>,
    polls: Arc<AtomicU64>,
}

impl Crowd {
    /// Starts waiters, each of which releases the lock at once when it gets it.
    fn of(requests: impl Iterator<Item = LockRequest>) -> Crowd {
        let polls = Arc::<AtomicU64>::default();
        let waiter = |request: LockRequest| {
            let polls = Arc::clone(&polls);
            tokio::spawn(async move {
                let mut acquire = pin!(request.acquire());
                let counted = std::future::poll_fn(|context| {
                    polls.fetch_add(1, Ordering::SeqCst);
                    acquire.as_mut().poll(context)
                });
                drop(counted.await.expect("its turn"));
            })
        };
        let waiters = requests.map(waiter).collect();
        Crowd { waiters, polls }
    }

    /// Waits until no waiter has been woken for this time, and returns the number of allocations meanwhile.
    async fn rests(&self, span: Duration) -> usize {
        let mut rested = None;
        wait::eventually("no waiter is woken any more", async || {
            let (polls, before) = (self.polls.load(Ordering::SeqCst), allocations());
            tokio::time::sleep(span).await;
            let still = self.polls.load(Ordering::SeqCst) == polls;
            rested = still.then(|| allocations() - before);
            still
        })
        .await;
        rested.expect("a while ago")
    }

    /// Checks that the process does almost nothing while they wait: for each of them, less than one allocation a second.
    /// So it asks no question for each waiter, and for each key at most one in several seconds.
    async fn is_idle(&self) {
        let span = Duration::from_secs(2);
        let work = self.rests(span).await;
        println!(
            "\n{} waiters, {work} allocations in {span:?}",
            self.waiters.len()
        );
        assert!(
            work < 2 * self.waiters.len(),
            "{work} allocations for nothing"
        );
    }

    async fn are_served(self) {
        for waiter in self.waiters {
            waiter.await.expect("no panic");
        }
    }

    async fn give_up(self) {
        for waiter in &self.waiters {
            waiter.abort();
        }
        for waiter in self.waiters {
            assert!(waiter.await.is_err_and(|error| error.is_cancelled()));
        }
    }
}

struct Place {
    owner: LockManager,
    others: Vec<LockManager>,
}

impl Place {
    async fn held(&self, keys: usize) -> Vec<LockGuard> {
        let mut guards = Vec::with_capacity(keys);
        for key in 0..keys {
            let request = self.owner.lock(format!("k{key}")).ttl(long());
            let request = request.renew(Renew::Off).wait(Wait::Forever);
            guards.push(request.acquire().await.expect("its turn"));
        }
        guards
    }

    /// Starts this many waiters for this many keys, on several managers.
    fn crowd(&self, count: usize, keys: usize) -> Crowd {
        let request = |index: usize| {
            let locks = &self.others[index % self.others.len()];
            let request = locks.lock(format!("k{}", index % keys)).ttl(long());
            request.wait(Wait::Forever)
        };
        Crowd::of((0..count).map(request))
    }

    /// Lets some waiters be served and some give up. All have gone when this returns.
    async fn come_and_go(&self, waiters: usize, keys: usize, idle: bool) {
        let guards = self.held(keys).await;
        let crowd = self.crowd(waiters, keys);
        if idle {
            crowd.is_idle().await;
        }
        guards
            .into_iter()
            .for_each(LockGuard::release_in_background);
        crowd.are_served().await;
        let guards = self.held(keys).await;
        let crowd = self.crowd(waiters, keys);
        crowd.rests(Duration::from_millis(200)).await;
        crowd.give_up().await;
        drop(guards);
    }
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn waiters_come_and_go() {
    let Some(url) = server_of_parent() else {
        return;
    };
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(manager(&url).await);
    }
    let owner = manager(&url).await;
    let place = Place { owner, others };
    // The first rounds make the things that are made once: connections, scripts, buffers.
    for _ in 0..2 {
        place.come_and_go(8, 1, false).await;
        place.come_and_go(64, 64, false).await;
    }
    let start = allocated();
    place.come_and_go(1_000, 1, true).await;
    comes_back_to("a thousand waiters", start + A_LITTLE).await;
    place.come_and_go(5_000, 5_000, true).await;
    // Connections keep buffers for as much as they have sent at once.
    comes_back_to("five thousand keys", start + BUFFERS).await;
    for _ in 0..2 {
        place.come_and_go(5_000, 5_000, false).await;
        comes_back_to("as many once more", start + BUFFERS).await;
    }
    drop(place);
    comes_back_to("the managers", start).await;
    println!("\ndone");
}

/// The tolerance for lists that have grown by a step.
const A_LITTLE: usize = 64 << 10;
/// The tolerance for the buffers of six connections.
const BUFFERS: usize = 2 << 20;

async fn comes_back_to(what: &str, limit: usize) {
    let mut least = usize::MAX;
    let back = async {
        while allocated() > limit {
            least = least.min(allocated());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let back = timeout(wait::PATIENCE, back).await;
    assert!(back.is_ok(), "{what} have left {least} bytes, of {limit}");
    println!("\n{what} have gone: {} bytes of {limit}", allocated());
}

#[tokio::test]
async fn waiters_cost_no_work_while_they_wait_and_leave_no_memory_behind() {
    needs!(redis);
    let server = RedisServer::start();
    let mut waiting = process("memory::waiters_come_and_go", &server, &[]);
    let ended = waiting.wait(wait::PATIENCE * 4);
    println!("{}", waiting.output());
    assert!(ended.is_some_and(|status| status.success()));
    assert_eq!(keys(&server), [""; 0]);
    assert_eq!(server.cli(&["PUBSUB", "CHANNELS", "*"]), "");
}
