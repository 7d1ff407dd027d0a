//! Many calls at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lock_core::{Error, LockManager, idempotent};
use tokio::sync::Barrier;

#[derive(Clone)]
struct Bank {
    locks: LockManager,
    effects: Arc<AtomicU64>,
    begun: Arc<Barrier>,
}

impl Bank {
    fn new() -> Bank {
        Bank {
            locks: LockManager::in_memory(),
            effects: Arc::default(),
            begun: Arc::new(Barrier::new(2)),
        }
    }

    fn effect(&self) -> u64 {
        self.effects.fetch_add(1, Ordering::SeqCst) + 1
    }

    #[idempotent(key = "pay:<id>", ttl = "10s", remember = "24h", wait = "30s", manager = self.locks)]
    async fn pay(&self, id: u64) -> Result<u64, Error> {
        tokio::task::yield_now().await;
        let effect = self.effect();
        tokio::task::yield_now().await;
        Ok(effect)
    }

    #[idempotent(key = "held:<id>", ttl = "10s", remember = "24h", wait = "30s", manager = self.locks)]
    async fn held(&self, id: u64) -> Result<u64, Error> {
        self.begun.wait().await;
        self.begun.wait().await;
        Ok(self.effect())
    }

    #[idempotent(key = "fails:<id>", ttl = "10s", remember = "24h", wait = "30s", manager = self.locks)]
    async fn fails_twice(&self, id: u64) -> Result<u64, Error> {
        match self.effect() {
            run @ 1..=2 => Err(Error::invalid(format!("run {run}"))),
            run => Ok(run),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_tasks_have_one_effect_and_one_result() {
    let bank = Bank::new();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let bank = bank.clone();
            tokio::spawn(async move { bank.pay(7).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.expect("no panic").expect("one run"), 1);
    }
    assert_eq!(bank.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_that_waits_gets_the_result_of_the_run_in_flight() {
    let bank = Bank::new();
    let spawn = || {
        let bank = bank.clone();
        tokio::spawn(async move { bank.held(7).await })
    };
    let first = spawn();
    bank.begun.wait().await;
    let second = spawn();
    let refused = bank.locks.lock("held:7").try_acquire().await;
    assert!(refused.expect("no fault").is_none(), "the first call runs");
    bank.begun.wait().await;
    for call in [first, second] {
        assert_eq!(call.await.expect("no panic").expect("kept"), 1);
    }
}

#[tokio::test]
async fn a_call_that_waits_runs_when_the_run_before_it_fails() {
    let bank = Bank::new();
    let calls = (
        bank.fails_twice(1),
        bank.fails_twice(1),
        bank.fails_twice(1),
        bank.fails_twice(1),
    );
    let (a, b, c, d) = tokio::join!(calls.0, calls.1, calls.2, calls.3);
    let results = [a, b, c, d];
    assert_eq!(results.iter().filter(|result| result.is_err()).count(), 2);
    for kept in results.into_iter().flatten() {
        assert_eq!(kept, 3);
    }
}
