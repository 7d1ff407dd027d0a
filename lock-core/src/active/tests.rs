//! A lease that the keeper does not look after: it may be late, or was stopped with its process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{HeldLong, Hold};
use crate::LockManager;
use crate::api::test_util::ManualClock;
use crate::base::fence::FencingToken;
use crate::lease::{Action, Renewal, Terms};

#[tokio::test]
async fn a_lease_that_is_over_is_not_valid_though_the_keeper_has_not_looked() {
    let clock = ManualClock::new();
    let builder = LockManager::builder("memory:").clock(clock.clone());
    let locks = builder.connect().await.expect("a manager");
    let core = locks.core();
    let ttl = Duration::from_secs(10);
    let terms = Terms::new(ttl, true, None);
    let hold = Hold::new(core, &"k".into(), terms, core.tokens.manager());
    let sent = core.keeper.clock.now();
    hold.ask(sent + ttl);
    assert!(hold.grant(sent, FencingToken::new(1).expect("a token")));
    assert!(hold.is_valid());
    // The keeper was never told of it.
    clock.advance(ttl);
    assert!(!hold.is_valid());
}

#[derive(Default)]
struct Told(Mutex<Vec<u64>>);

impl HeldLong for Told {
    fn held_long(&self, held_for: Duration) {
        self.0.lock().expect("no panic").push(held_for.as_secs());
    }
}

/// A leader's lock is held for days: its line comes a few times, and a stuck one's is not missed.
#[tokio::test]
async fn a_lock_that_is_held_for_long_is_told_of_at_ten_ttls_and_whenever_that_has_doubled() {
    let clock = ManualClock::new();
    let builder = LockManager::builder("memory:").clock(clock.clone());
    let locks = builder.connect().await.expect("a manager");
    let core = locks.core();
    let second = Duration::from_secs(1);
    let terms = Terms::new(second * 2, true, None);
    let hold = Hold::new(core, &"k".into(), terms, core.tokens.manager());
    hold.ask(core.keeper.clock.now() + second);
    assert!(hold.grant(
        core.keeper.clock.now(),
        FencingToken::new(1).expect("a token")
    ));
    let told = Arc::new(Told::default());
    hold.watch(Arc::downgrade(&told) as _);
    for _ in 0..200 {
        clock.advance(second);
        let now = core.keeper.clock.now();
        while hold.poll(now) != Action::Nothing {
            hold.renewed(now, Renewal::Extended);
        }
    }
    assert_eq!(*told.0.lock().expect("no panic"), [20, 40, 80, 160]);
}
