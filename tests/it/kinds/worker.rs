//! One process of the storm: tasks that take locks of every kind, hold them for a moment, and let go.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockGuard, LockManager, LockRequest, Wait};
use tokio::time::sleep;

use super::ledger::Ledger;
use super::stage::Kind;
use super::{FOLDER, SEED, SERVER, STAGE};
use crate::dice::Dice;

const TASKS: u64 = 6;

/// The longest wait. Most of the time a key has an owner that was killed, whose lease has to run out first, and some ten
/// callers stand before the last one.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that the storm starts"]
async fn works_until_it_is_killed_or_told_to_stop() {
    let (Ok(url), Ok(folder)) = (std::env::var(SERVER), std::env::var(FOLDER)) else {
        return;
    };
    let seed: u64 = std::env::var(SEED)
        .ok()
        .and_then(|seed| seed.parse().ok())
        .expect("a seed");
    let folder = PathBuf::from(folder);
    let ledger = Arc::new(Ledger::open(&folder));
    let kind = Kind::named(&std::env::var(STAGE).expect("a stage"));
    let locks = kind.manager(&url).await;
    let longest = Arc::new(AtomicU64::new(0));
    let goes_on = Arc::new(AtomicBool::new(true));
    let granted = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (locks, ledger) = (locks.clone(), Arc::clone(&ledger));
            let (goes_on, granted) = (Arc::clone(&goes_on), Arc::clone(&granted));
            let longest = Arc::clone(&longest);
            tokio::spawn(async move {
                let mut dice = Dice::of(&[seed, task]);
                while goes_on.load(Ordering::SeqCst) {
                    if let Some(waited) = once(&locks, &ledger, &mut dice, kind).await {
                        granted.fetch_add(1, Ordering::SeqCst);
                        let waited = u64::try_from(waited.as_millis()).expect("a short wait");
                        longest.fetch_max(waited, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    while !folder.join("stop").exists() {
        sleep(Duration::from_millis(10)).await;
    }
    goes_on.store(false, Ordering::SeqCst);
    for task in tasks {
        task.await.expect("no panic");
    }
    locks.drain(Duration::from_secs(20)).await;
    println!(
        "\n{} ms waited at most, {} granted",
        longest.load(Ordering::SeqCst),
        granted.load(Ordering::SeqCst)
    );
}

/// Takes a lock of some kind. Returns how long it waited; `None`: it was not granted.
async fn once(
    locks: &LockManager,
    ledger: &Ledger,
    dice: &mut Dice,
    kind: Kind,
) -> Option<Duration> {
    let (keys, limit, request) = match kind {
        Kind::Hangs => request_of_several(locks, dice),
        _ => request(locks, dice),
    };
    let wait = match dice.index(4) {
        0 => Wait::None,
        1 => Wait::For(Duration::from_millis(dice.between(1, 40))),
        _ => Wait::For(PATIENCE),
    };
    let request = request.ttl(Duration::from_millis(dice.between(400, 1_500)));
    let began = Instant::now();
    let acquiring = request.wait(wait).acquire();
    let acquired = if dice.percent(10) {
        // A caller that gives up.
        let patience = Duration::from_millis(dice.between(0, 20));
        match tokio::time::timeout(patience, acquiring).await {
            Ok(acquired) => acquired,
            Err(_) => return None,
        }
    } else {
        acquiring.await
    };
    match acquired {
        Ok(guard) => {
            let waited = began.elapsed();
            let hold = works(ledger, None, &keys, limit, &guard, dice).await;
            let goes_on = kind != Kind::Hangs && keys.len() == 1 && limit == 0;
            if goes_on && dice.percent(20) {
                goes_on_otherwise(locks, ledger, kind, &hold, &keys, guard, dice).await;
            } else {
                ends(guard, kind, dice).await;
            }
            Some(waited)
        }
        Err(error) => {
            let patient = matches!(wait, Wait::For(span) if span == PATIENCE);
            let is_out = match kind {
                Kind::Kills => false,
                Kind::Stops | Kind::Hangs => error.kind() == ErrorKind::Unavailable,
                // A share that does not wait cannot know whether it fits.
                Kind::Moves => error.kind() == ErrorKind::Unavailable && !patient,
            };
            assert!(is_out || error.kind() == ErrorKind::Busy, "{error}");
            assert!(
                !patient || is_out,
                "a waiter of {keys:?} (limit {limit}) was starved, or two callers wait for each other: {error}"
            );
            sleep(Duration::from_millis(1)).await;
            None
        }
    }
}

fn request(locks: &LockManager, dice: &mut Dice) -> (Vec<String>, u32, LockRequest) {
    let plain = |number: usize| format!("k{number}");
    match dice.index(8) {
        0 => {
            let key = plain(dice.index(4));
            (vec![key.clone()], 0, locks.lock(key))
        }
        1..=3 => {
            let key = plain(dice.index(4));
            (vec![key.clone()], u32::MAX, locks.lock(key).read())
        }
        4 => {
            let key = format!("p{}", dice.index(3));
            (vec![key.clone()], 0, locks.lock(key))
        }
        5 | 6 => {
            let number = dice.index(3);
            // The last key has mixed limits.
            let limit = match number {
                0 => 2,
                1 => 5,
                _ => dice.one_of(&[2, 3, 5]),
            };
            let key = format!("p{number}");
            (vec![key.clone()], limit, locks.lock(key).permits(limit))
        }
        _ => {
            let first = dice.index(4);
            let mut keys = vec![plain(first), plain((first + 1 + dice.index(3)) % 4)];
            if dice.percent(30) {
                keys.push(format!("p{}", dice.index(3)));
            }
            (keys.clone(), 0, locks.lock_all(keys))
        }
    }
}

/// Several servers that vote have no permits.
fn request_of_several(locks: &LockManager, dice: &mut Dice) -> (Vec<String>, u32, LockRequest) {
    let first = dice.index(4);
    let key = format!("k{first}");
    match dice.index(8) {
        0..=2 => (vec![key.clone()], 0, locks.lock(key)),
        3..=6 => (vec![key.clone()], u32::MAX, locks.lock(key).read()),
        _ => {
            let keys = vec![key, format!("k{}", (first + 1 + dice.index(3)) % 4)];
            (keys.clone(), 0, locks.lock_all(keys))
        }
    }
}

/// Claims the keys for a moment. `hold`: the first claim of a lock that goes on. Returns the name of the first claim.
async fn works(
    ledger: &Ledger,
    hold: Option<&str>,
    keys: &[String],
    limit: u32,
    guard: &LockGuard,
    dice: &mut Dice,
) -> String {
    let claim = ledger.claim(hold, keys, limit, u64::from(guard.fencing_token()));
    claim.goes_on(|| guard.is_valid());
    for _ in 0..dice.between(0, 4) {
        sleep(Duration::from_millis(1)).await;
        if !claim.goes_on(|| guard.is_valid()) {
            break;
        }
    }
    claim.hold
}

/// Goes on as a reader, or by a ticket, which may never be used.
async fn goes_on_otherwise(
    locks: &LockManager,
    ledger: &Ledger,
    kind: Kind,
    hold: &str,
    keys: &[String],
    guard: LockGuard,
    dice: &mut Dice,
) {
    let (next, limit) = if dice.percent(50) {
        (guard.downgrade().await, u32::MAX)
    } else {
        let ticket = guard
            .ticket(Duration::from_millis(dice.between(50, 1_000)))
            .await;
        drop(guard);
        sleep(Duration::from_millis(dice.between(0, 100))).await;
        match ticket {
            Ok(_) if dice.percent(20) => return,
            Ok(ticket) => (locks.resume(ticket).await, 0),
            Err(error) => (Err(error), 0),
        }
    };
    match next {
        Ok(guard) => {
            works(ledger, Some(hold), keys, limit, &guard, dice).await;
            ends(guard, kind, dice).await;
        }
        Err(error) => {
            let kinds = [ErrorKind::Lost, ErrorKind::Unavailable];
            assert!(kinds.contains(&error.kind()), "{error}");
        }
    }
}

async fn ends(guard: LockGuard, kind: Kind, dice: &mut Dice) {
    match dice.index(3) {
        0 => drop(guard),
        1 => guard.release_in_background(),
        _ => {
            if let Err(error) = guard.release().await {
                // Servers that hang do not answer the release, which the manager repeats.
                let is_out = kind == Kind::Hangs && error.kind() == ErrorKind::Unavailable;
                assert!(is_out || error.kind() == ErrorKind::Lost, "{error}");
            }
        }
    }
}
