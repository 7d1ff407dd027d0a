//! Functions with `#[idempotent]`: what one process has kept is the result of every other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lock_core::middleware::Forgotten;
use lock_core::{Error, ErrorKind, LockManager, idempotent};
use lock_tests::wait;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Fixture, kind, long};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    run: u64,
    cents: u64,
}

/// One process of a shop. The effects are those of all processes.
#[derive(Clone)]
struct Shop {
    locks: LockManager,
    effects: Arc<AtomicU64>,
    /// Each body takes a permit before it ends.
    may_end: Arc<Semaphore>,
}

impl Shop {
    async fn new(store: &Fixture) -> Shop {
        Shop {
            locks: store.manager().await,
            effects: Arc::default(),
            may_end: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }

    /// Returns another process of this shop.
    async fn other(&self, store: &Fixture) -> Shop {
        let locks = store.manager().await;
        Shop {
            locks,
            ..self.clone()
        }
    }

    #[idempotent(
        key = "charge:<order>", ttl = long(), remember = long(), fingerprint = "<cents>", wait = long(), manager = self.locks,
    )]
    async fn charge(&self, order: u64, cents: u64) -> Result<Receipt, Error> {
        let permit = self.may_end.acquire().await;
        let run = self.effects.fetch_add(1, Ordering::SeqCst) + 1;
        drop(permit);
        Ok(Receipt { run, cents })
    }

    #[idempotent(key = "fails:<order>", ttl = long(), remember = long(), wait = long(), manager = self.locks)]
    async fn fails_once(&self, order: u64) -> Result<u64, Error> {
        match self.effects.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Error::invalid("the first run")),
            before => Ok(before + order),
        }
    }

    async fn has_gone(self, store: &Fixture, key: &str) {
        assert_eq!(
            self.locks.forget(key).await.expect("no fault"),
            Forgotten::Yes
        );
        store.is_left_clean().await;
    }
}

pub(super) async fn a_result_is_returned_in_every_process_until_it_is_forgotten(store: &Fixture) {
    let shop = Shop::new(store).await;
    let other = shop.other(store).await;
    let first = shop.charge(42, 1_800).await.expect("free");
    for process in [&shop, &other] {
        assert_eq!(process.charge(42, 1_800).await.expect("kept"), first);
        let reused = process.charge(42, 9_900).await;
        assert_eq!(kind(reused), ErrorKind::Reused);
    }
    assert_eq!(shop.effects.load(Ordering::SeqCst), 1);
    let forgotten = other.locks.forget("charge:42").await;
    assert_eq!(forgotten.expect("no fault"), Forgotten::Yes);
    assert_eq!(other.charge(42, 9_900).await.expect("free").run, 2);
    shop.has_gone(store, "charge:42").await;
}

pub(super) async fn calls_that_wait_in_two_processes_get_the_result_of_one_run(store: &Fixture) {
    let mut shop = Shop::new(store).await;
    shop.may_end = Arc::new(Semaphore::new(0));
    let other = shop.other(store).await;
    let calls: Vec<_> = [&shop, &other, &shop, &other]
        .map(|process| {
            let process = process.clone();
            tokio::spawn(async move { process.charge(42, 1_800).await })
        })
        .into();
    shop.may_end.add_permits(1);
    for call in calls {
        let result = timeout(wait::PATIENCE, call).await.expect("in time");
        assert_eq!(result.expect("no panic").expect("kept").run, 1);
    }
    assert_eq!(shop.effects.load(Ordering::SeqCst), 1);
    shop.has_gone(store, "charge:42").await;
}

pub(super) async fn a_run_that_fails_lets_the_next_process_run(store: &Fixture) {
    let shop = Shop::new(store).await;
    let other = shop.other(store).await;
    let (one, two) = tokio::join!(shop.fails_once(7), other.fails_once(7));
    assert!(one.is_err() ^ two.is_err(), "one run fails");
    assert_eq!(one.or(two).expect("the second run"), 8);
    assert_eq!(shop.fails_once(7).await.expect("kept"), 8);
    shop.has_gone(store, "fails:7").await;
}
