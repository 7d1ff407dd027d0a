//! Tests everything at once.
//!
//! Many takers on many threads wait, give up, drop, release and cool down in every mixture.
//!
//! Every taker checks the invariants under its lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::{Fixture, drains, long};
use crate::dice::Dice;

const TAKERS: u64 = 12;
const ROUNDS: u64 = 150;
const KEYS: usize = 2;

/// The data under the locks.
#[derive(Default)]
struct Guarded {
    inside: AtomicBool,
    highest_fence: AtomicU64,
    entered: AtomicU64,
}

async fn taker(locks: LockManager, guarded: Arc<[Guarded; KEYS]>, seed: u64) {
    let mut dice = Dice::of(&[seed]);
    for _ in 0..ROUNDS {
        let key = dice.index(KEYS);
        let wait = match dice.throw(4) {
            0 => Wait::None,
            1 => Wait::For(Duration::from_millis(dice.throw(5))),
            _ => Wait::Forever,
        };
        let acquire = locks
            .lock(format!("k{key}"))
            .ttl(long())
            .wait(wait)
            .acquire();
        // The patience is often too short, so that the taker gives up.
        let patience = match dice.throw(10) {
            // This one suffices on a slow machine too.
            9 => long(),
            shift => Duration::from_micros(50 << shift),
        };
        let guard = match timeout(patience, acquire).await {
            Ok(Ok(guard)) => guard,
            Ok(Err(error)) if error.kind() == ErrorKind::Busy => continue,
            // A short wait ended before the store had answered.
            Ok(Err(error)) if wait != Wait::None && error.kind() == ErrorKind::Unavailable => {
                continue;
            }
            Ok(Err(error)) => panic!("{error:?}"),
            Err(_) => continue,
        };
        let this = &guarded[key];
        assert!(!this.inside.swap(true, Ordering::SeqCst), "two are inside");
        let fence = u64::from(guard.fencing_token());
        assert!(
            this.highest_fence.swap(fence, Ordering::SeqCst) < fence,
            "fencing tokens rise"
        );
        this.entered.fetch_add(1, Ordering::SeqCst);
        match dice.throw(3) {
            0 => tokio::task::yield_now().await,
            1 => tokio::time::sleep(Duration::from_micros(dice.throw(300))).await,
            _ => {}
        }
        assert!(guard.is_valid());
        this.inside.store(false, Ordering::SeqCst);
        match dice.throw(6) {
            0 | 1 => guard.release().await.expect("held"),
            2 => guard.release_in_background(),
            3 => drop(timeout(Duration::from_micros(dice.throw(200)), guard.release()).await),
            4 => {
                guard.cooldown(Duration::from_millis(1));
                drop(guard);
            }
            _ => drop(guard),
        }
    }
}

async fn storm(store: &Fixture) {
    let guarded: Arc<[Guarded; KEYS]> = Arc::default();
    rages(store, |locks, seed| {
        taker(locks, Arc::clone(&guarded), seed + 1)
    })
    .await;
    for key in &*guarded {
        assert!(
            key.entered.load(Ordering::SeqCst) > ROUNDS / 10,
            "there were many grants"
        );
    }
}

/// Runs the tasks of a storm on three managers. At the end nothing is held, and the store is left clean.
pub(super) async fn rages<T>(store: &Fixture, task: impl Fn(LockManager, u64) -> T)
where
    T: Future<Output = ()> + Send + 'static,
{
    let mut managers = Vec::new();
    for _ in 0..3 {
        managers.push(store.manager().await);
    }
    let on = |seed: u64| managers[usize::try_from(seed).expect("small") % 3].clone();
    let tasks = (0..TAKERS).map(|seed| tokio::spawn(task(on(seed), seed)));
    for task in tasks.collect::<Vec<_>>() {
        let task = timeout(wait::PATIENCE * 2, task).await;
        task.expect("no task is starved").expect("no panic");
    }
    for locks in &managers {
        drains(locks).await;
        assert!(locks.held().is_empty());
    }
    // Those of several servers still undo the votes of a slow one.
    if !store.is_of_several() {
        managers.clear();
    }
    store.is_left_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn in_a_storm_of_takers_one_is_inside_and_fences_rise_in_memory() {
    storm(&Fixture::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn in_a_storm_of_takers_one_is_inside_and_fences_rise_on_redis() {
    needs!(redis);
    storm(&Fixture::redis()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn in_a_storm_of_takers_one_is_inside_and_fences_rise_on_a_watched_master() {
    needs!(redis);
    storm(&Fixture::sentinel()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn in_a_storm_of_takers_one_is_inside_and_fences_rise_on_a_cluster() {
    needs!(redis);
    storm(&Fixture::cluster()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn in_a_storm_of_takers_one_is_inside_and_fences_rise_over_three_stores() {
    storm(&Fixture::quorum()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn in_a_storm_of_takers_one_is_inside_and_fences_rise_over_three_servers() {
    needs!(redis);
    storm(&Fixture::redlock()).await;
}
