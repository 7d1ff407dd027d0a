//! Runs one of the many contenders, which takes the lock again and again.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockGuard, LockManager, Wait};
use lock_tests::wait;
use tokio::time::{sleep, timeout};

use crate::dice::Dice;
use crate::kinds::ledger::Ledger;

/// A ttl so short that a loss costs little, and so long that a busy machine can renew it.
pub(super) const TTL: Duration = Duration::from_millis(1_200);

/// Counts the outcomes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) entered: u64,
    busy: u64,
    cancelled: u64,
    unavailable: u64,
    lost: u64,
    longest_wait: Duration,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.entered += other.entered;
        self.busy += other.busy;
        self.cancelled += other.cancelled;
        self.unavailable += other.unavailable;
        self.lost += other.lost;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
    }
}

/// Takes the lock in all possible ways until there is a file `over`.
pub(super) async fn takes(
    locks: LockManager,
    folder: &Path,
    ledger: Arc<Ledger>,
    seed: u64,
) -> Tally {
    let mut dice = Dice::of(&[seed]);
    let mut tally = Tally::default();
    let over = folder.join("over");
    while !over.exists() {
        if let Some(guard) = acquires(&locks, &mut dice, &mut tally).await {
            works(&ledger, &guard, &mut dice, &mut tally).await;
            gives_back(guard, &mut dice, &mut tally).await;
        }
        match dice.throw(4) {
            0 => sleep(Duration::from_micros(dice.throw(2_000))).await,
            _ => tokio::task::yield_now().await,
        }
    }
    tally
}

async fn acquires(locks: &LockManager, dice: &mut Dice, tally: &mut Tally) -> Option<LockGuard> {
    let (wait, patience) = match dice.throw(8) {
        0 => (Wait::None, wait::PATIENCE),
        1 => (
            Wait::For(Duration::from_millis(1 << dice.throw(9))),
            wait::PATIENCE,
        ),
        // The acquire is cancelled at a random point.
        2 | 3 => (Wait::Forever, Duration::from_micros(64 << dice.throw(12))),
        _ => (Wait::Forever, wait::PATIENCE),
    };
    let begun = Instant::now();
    let acquire = locks.lock("k").ttl(TTL).wait(wait).acquire();
    let answer = timeout(patience, acquire).await;
    if wait == Wait::Forever {
        tally.longest_wait = tally.longest_wait.max(begun.elapsed());
    }
    match answer {
        Ok(Ok(guard)) => return Some(guard),
        Ok(Err(error)) => match error.kind() {
            ErrorKind::Busy if wait != Wait::Forever => tally.busy += 1,
            ErrorKind::Unavailable => {
                tally.unavailable += 1;
                sleep(Duration::from_millis(1)).await;
            }
            kind => panic!("{kind:?} for {wait:?}: {error}"),
        },
        Err(_) if patience < wait::PATIENCE => tally.cancelled += 1,
        Err(_) => panic!(
            "a waiter was forgotten: {wait:?} has lasted for {:?}",
            begun.elapsed()
        ),
    }
    None
}

async fn works(ledger: &Ledger, guard: &LockGuard, dice: &mut Dice, tally: &mut Tally) {
    let Some(claim) = ledger.of(guard) else {
        return;
    };
    tally.entered += 1;
    for _ in 0..dice.throw(4) {
        match dice.throw(3) {
            0 => tokio::task::yield_now().await,
            1 => sleep(Duration::from_micros(dice.throw(1_500))).await,
            _ => {}
        }
        if !claim.goes_on(|| guard.is_valid()) {
            return;
        }
    }
    claim.goes_on(|| guard.is_valid());
}

async fn gives_back(guard: LockGuard, dice: &mut Dice, tally: &mut Tally) {
    match dice.throw(8) {
        0 => drop(guard),
        1 => guard.release_in_background(),
        2 => drop(timeout(Duration::from_micros(dice.throw(300)), guard.release()).await),
        3 => {
            guard.cooldown(Duration::from_millis(dice.throw(5)));
            drop(guard);
        }
        _ => match guard.release().await.map_err(|error| error.kind()) {
            Ok(()) => {}
            Err(ErrorKind::Lost) => tally.lost += 1,
            Err(ErrorKind::Unavailable) => tally.unavailable += 1,
            Err(kind) => panic!("{kind:?}"),
        },
    }
}
