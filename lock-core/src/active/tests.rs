//! A lease that the keeper does not look after: it may be late, or was stopped with its process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{ActiveLease, LongHoldObserver};
use crate::base::clock::Clock;
use crate::base::fence::FencingToken;
use crate::base::manual_clock::ManualClock;
use crate::base::token::{Address, TokenSource};
use crate::lease::{Action, Extended, LeaseOptions, Loss, Phase};

pub(super) fn lease_on(clock: &ManualClock, options: LeaseOptions) -> Arc<ActiveLease> {
    let address = Address::random();
    let token = TokenSource::new(address).fresh_at(address, clock.now());
    ActiveLease::new(&"k".into(), token, options, &Clock::Manual(clock.clone()))
}

#[test]
fn a_lease_that_is_over_is_not_valid_though_the_keeper_has_not_looked() {
    let clock = ManualClock::new();
    let ttl = Duration::from_secs(10);
    let options = LeaseOptions::new(ttl, true, None);
    let lease = lease_on(&clock, options);
    let sent = clock.now();
    lease.ask(sent + ttl);
    assert!(lease.grant(sent, FencingToken::new(1).expect("a token")));
    assert_eq!(lease.observe(), (Phase::Held, false));
    // The keeper was never told of it.
    clock.advance(ttl);
    assert_eq!(lease.observe(), (Phase::Lost(Loss::Expired), true));
}

#[derive(Default)]
struct Told(Mutex<Vec<u64>>);

impl LongHoldObserver for Told {
    fn on_long_hold(&self, held_for: Duration) {
        self.0.lock().expect("no panic").push(held_for.as_secs());
    }
}

/// A leader's lock is held for days: its line comes a few times, and a stuck one's is not missed.
#[test]
fn a_lock_that_is_held_for_long_is_told_of_at_ten_ttls_and_whenever_that_has_doubled() {
    let clock = ManualClock::new();
    let second = Duration::from_secs(1);
    let options = LeaseOptions::new(second * 2, true, None);
    let lease = lease_on(&clock, options);
    lease.ask(clock.now() + second);
    assert!(lease.grant(clock.now(), FencingToken::new(1).expect("a token")));
    let told = Arc::new(Told::default());
    lease.watch(Arc::downgrade(&told) as _);
    for _ in 0..200 {
        clock.advance(second);
        let now = clock.now();
        while lease.poll(now) != Action::Nothing {
            assert!(!lease.renewed(now, Extended::Yes));
        }
    }
    assert_eq!(*told.0.lock().expect("no panic"), [20, 40, 80, 160]);
}

struct Panics;

impl LongHoldObserver for Panics {
    fn on_long_hold(&self, _: Duration) {
        panic!("the log is full");
    }
}

/// The keeper's thread renews all locks of its manager.
#[test]
fn a_panic_of_the_observer_of_a_long_hold_does_not_reach_the_keeper() {
    let clock = ManualClock::new();
    let second = Duration::from_secs(1);
    let lease = lease_on(&clock, LeaseOptions::new(second, true, None));
    lease.ask(clock.now() + second);
    assert!(lease.grant(clock.now(), FencingToken::new(1).expect("a token")));
    let observer = Arc::new(Panics);
    lease.watch(Arc::downgrade(&observer) as _);
    let mut told = false;
    for _ in 0..50 {
        clock.advance(second / 4);
        let now = clock.now();
        match lease.poll(now) {
            Action::HeldLong => told = true,
            _ => assert!(!lease.renewed(now, Extended::Yes)),
        }
    }
    assert!(told && lease.observe() == (Phase::Held, false));
}
