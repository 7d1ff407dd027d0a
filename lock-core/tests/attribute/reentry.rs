//! Functions under a lock that call functions with the same lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lock_core::{Error, ErrorKind, FencingToken, LockManager, distributed_lock};

#[derive(Clone)]
struct Bank {
    locks: LockManager,
    inside: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl lock_core::AsLockManager for Bank {
    fn as_lock_manager(&self) -> LockManager {
        self.locks.clone()
    }
}

impl Bank {
    fn new() -> Bank {
        Bank {
            locks: LockManager::in_memory(),
            inside: Arc::default(),
            most: Arc::default(),
        }
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s", wait = "5s", manager = self, guard = lock)]
    async fn book(&self, id: u64) -> Result<FencingToken, Error> {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(lock.fencing_token())
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s", manager = self, guard = lock)]
    async fn settle(&self, id: u64) -> Result<(), Error> {
        assert_eq!(self.book(id).await?, lock.fencing_token(), "the same lease");
        assert!(lock.is_valid(), "which is not left by it");
        Ok(())
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s", manager = self)]
    async fn settle_at_once(&self, id: u64) -> Result<(), Error> {
        let (first, second) = tokio::join!(self.book(id), self.book(id));
        assert_eq!(first?, second?);
        Ok(())
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s", manager = self)]
    async fn settle_elsewhere(&self, id: u64) -> Result<ErrorKind, Error> {
        let bank = self.clone();
        let spawned = tokio::spawn(async move { bank.at_once(id).await });
        let refused = spawned.await.expect("no panic");
        Ok(refused.expect_err("a spawned task is not inside").kind())
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s", manager = self, guard = lock)]
    async fn settle_in_a_task(&self, id: u64) -> Result<(), Error> {
        let (bank, scope) = (self.clone(), lock.clone());
        let task = tokio::spawn(async move { scope.scope(bank.book(id)).await });
        assert_eq!(task.await.expect("no panic")?, lock.fencing_token());
        Ok(())
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s", manager = self)]
    async fn at_once(&self, id: u64) -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s", wait = forever, reentrant = false, manager = self)]
    async fn by_itself(&self, id: u64) -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s", manager = self)]
    async fn calls_by_itself(&self, id: u64) -> Result<ErrorKind, Error> {
        let refused = self.by_itself(id).await;
        Ok(refused.expect_err("it would wait for itself").kind())
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s", manager = self)]
    async fn with_another_bank(&self, id: u64, other: &Bank) -> Result<usize, Error> {
        other.book(id).await?;
        Ok(other.locks.held().len() + self.locks.held().len())
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s", manager = self)]
    async fn countdown(&self, id: u64, levels: u32) -> Result<u32, Error> {
        match levels {
            0 => Ok(0),
            _ => Ok(1 + Box::pin(self.countdown(id, levels - 1)).await?),
        }
    }
}

#[tokio::test]
async fn a_nested_call_enters_the_lock_of_its_caller() {
    let bank = Bank::new();
    bank.settle(7).await.expect("free");
    assert!(bank.locks.held().is_empty());
}

#[tokio::test]
async fn a_function_that_calls_itself_enters_its_own_lock() {
    let bank = Bank::new();
    assert_eq!(bank.countdown(7, 9).await.expect("free"), 9);
    assert!(bank.locks.held().is_empty());
}

#[tokio::test]
async fn two_concurrent_nested_calls_exclude_each_other() {
    let bank = Bank::new();
    bank.settle_at_once(7).await.expect("free");
    assert_eq!(bank.most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_spawned_call_is_outside_the_lock_unless_it_gets_a_handle() {
    let bank = Bank::new();
    let kind = bank.settle_elsewhere(7).await.expect("free");
    assert_eq!(kind, ErrorKind::Busy);
    bank.settle_in_a_task(7).await.expect("free");
}

#[tokio::test]
async fn a_nested_call_that_must_not_enter_fails_at_once() {
    let bank = Bank::new();
    let kind = bank.calls_by_itself(7).await.expect("free");
    assert_eq!(kind, ErrorKind::Invalid);
    bank.by_itself(7)
        .await
        .expect("without an outer lock it acquires its own");
}

#[tokio::test]
async fn a_nested_call_with_another_manager_acquires_its_own_lock() {
    let (bank, other) = (Bank::new(), Bank::new());
    let held = bank.with_another_bank(7, &other).await.expect("free");
    assert_eq!(held, 1, "the other one is given back by now");
    // With one store for both managers, the outer lock makes the nested call fail.
    let same = Bank {
        locks: LockManager::connect_lazy("memory:attribute-reentry").expect("a store"),
        ..Bank::new()
    };
    let again = Bank {
        locks: LockManager::connect_lazy("memory:attribute-reentry").expect("a store"),
        ..Bank::new()
    };
    let outer = same.locks.lock("account:7").run(again.at_once(7));
    let refused = outer
        .await
        .expect("free")
        .expect_err("the outer call holds the key");
    assert_eq!(refused.kind(), ErrorKind::Busy);
}
