//! Tests readers and writers at once.
//!
//! Many tasks on many threads read and write, wait, give up, drop and release in every mixture. Each of them checks
//! under its lock who else is inside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::needs;
use tokio::time::timeout;

use super::storm::rages;
use super::{Fixture, long};
use crate::dice::Dice;

const ROUNDS: u64 = 100;

/// The data under the lock.
#[derive(Default)]
struct Guarded {
    is_written: AtomicBool,
    readers: AtomicUsize,
    highest_of_writers: AtomicU64,
    highest: AtomicU64,
    written: AtomicUsize,
    /// How often a reader found another one.
    shared: AtomicUsize,
}

impl Guarded {
    fn enters(&self, writes: bool, fence: u64) {
        if writes {
            let was_written = self.is_written.swap(true, Ordering::SeqCst);
            assert!(!was_written, "two writers are inside");
            let readers = self.readers.load(Ordering::SeqCst);
            assert_eq!(readers, 0, "readers are inside");
            let before = self.highest.fetch_max(fence, Ordering::SeqCst);
            assert!(before < fence, "a writer's token is above all earlier ones");
            self.highest_of_writers.store(fence, Ordering::SeqCst);
            self.written.fetch_add(1, Ordering::SeqCst);
        } else {
            let others = self.readers.fetch_add(1, Ordering::SeqCst);
            self.shared
                .fetch_add(usize::from(others > 0), Ordering::SeqCst);
            let is_written = self.is_written.load(Ordering::SeqCst);
            assert!(!is_written, "a writer is inside");
            let before = self.highest_of_writers.load(Ordering::SeqCst);
            assert!(before < fence, "a reader's token is above those of writers");
            self.highest.fetch_max(fence, Ordering::SeqCst);
        }
    }

    fn leaves(&self, writes: bool) {
        if writes {
            self.is_written.store(false, Ordering::SeqCst);
        } else {
            self.readers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

async fn task(locks: LockManager, guarded: Arc<Guarded>, seed: u64) {
    let mut dice = Dice::of(&[seed]);
    for _ in 0..ROUNDS {
        let writes = dice.percent(20);
        let request = locks.lock("k").ttl(long());
        let request = if writes { request } else { request.read() };
        let wait = match dice.index(4) {
            0 => Wait::None,
            1 => Wait::For(Duration::from_millis(dice.between(0, 5))),
            _ => Wait::Forever,
        };
        // The patience is often too short, so that the task gives up.
        let patience = match dice.index(4) {
            0 => Duration::from_micros(dice.between(50, 20_000)),
            _ => long(),
        };
        let guard = match timeout(patience, request.wait(wait).acquire()).await {
            Ok(Ok(guard)) => guard,
            Ok(Err(error)) if error.kind() == ErrorKind::Busy => continue,
            // A short wait ended before the store had answered.
            Ok(Err(error)) if wait != Wait::None && error.kind() == ErrorKind::Unavailable => {
                continue;
            }
            Ok(Err(error)) => panic!("{error:?}"),
            Err(_) => continue,
        };
        guarded.enters(writes, guard.fencing_token().into());
        tokio::time::sleep(Duration::from_micros(dice.between(0, 300))).await;
        assert!(guard.is_valid());
        guarded.leaves(writes);
        match dice.index(4) {
            0 | 1 => guard.release().await.expect("held"),
            2 => guard.release_in_background(),
            _ => drop(guard),
        }
    }
}

async fn storm(store: &Fixture) {
    let guarded: Arc<Guarded> = Arc::default();
    rages(store, |locks, seed| task(locks, Arc::clone(&guarded), seed)).await;
    let [written, shared] = [&guarded.written, &guarded.shared].map(|it| it.load(Ordering::SeqCst));
    assert!(written > 50 && shared > 50, "{written} {shared}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn readers_and_writers_never_stand_beside_one_another_in_memory() {
    storm(&Fixture::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn readers_and_writers_never_stand_beside_one_another_on_redis() {
    needs!(redis);
    storm(&Fixture::redis()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn readers_and_writers_never_stand_beside_one_another_on_a_cluster() {
    needs!(redis);
    storm(&Fixture::cluster()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn readers_and_writers_never_stand_beside_one_another_over_three_stores() {
    storm(&Fixture::quorum()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn readers_and_writers_never_stand_beside_one_another_over_three_servers() {
    needs!(redis);
    storm(&Fixture::redlock()).await;
}
