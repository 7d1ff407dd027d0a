//! Bodies and kept work inside a lease whose owner has ended.

use std::sync::Arc;
use std::time::Duration;

use super::tests::lease_on;
use super::{ActiveLease, Closed, Detached};
use crate::base::fence::FencingToken;
use crate::base::manual_clock::ManualClock;
use crate::lease::{LeaseOptions, Loss, Phase};

const TTL: Duration = Duration::from_secs(10);

fn options() -> LeaseOptions {
    LeaseOptions::new(TTL, true, None)
}

fn held_on(clock: &ManualClock) -> Arc<ActiveLease> {
    let lease = lease_on(clock, options());
    lease.ask(clock.now() + TTL);
    assert!(lease.grant(clock.now(), FencingToken::new(1).expect("a token")));
    lease
}

/// The phase in which the owner has closed the lease; `None`: the lease goes on.
fn closed(lease: &ActiveLease) -> Option<Phase> {
    match lease.close() {
        Closed::NotYet => None,
        Closed::Now { before, .. } => Some(before),
    }
}

#[test]
fn the_last_body_inside_ends_the_lease_of_an_owner_that_has_ended() {
    let lease = held_on(&ManualClock::new());
    for _ in 0..2 {
        assert_eq!(lease.enter(options()), Phase::Held);
    }
    assert!(matches!(lease.detach(), Detached::Inside));
    assert_eq!(closed(&lease), None);
    assert_eq!(lease.enter(options()), Phase::Closed, "the owner has ended");
    assert!(!lease.leave(options()), "another one is inside");
    assert_eq!(lease.noticed_phase(), Phase::Held);
    assert!(lease.leave(options()));
    assert_eq!(closed(&lease), Some(Phase::Held));
}

#[test]
fn the_key_of_a_lost_lease_is_not_given_back_under_work_that_keeps_it() {
    let clock = ManualClock::new();
    let lease = held_on(&clock);
    assert_eq!(lease.keep(), Phase::Held);
    clock.advance(TTL);
    assert_eq!(closed(&lease), None);
    assert!(lease.let_go(), "it was the last one");
    assert_eq!(closed(&lease), Some(Phase::Lost(Loss::Expired)));
    assert_eq!(lease.keep(), Phase::Lost(Loss::Expired), "it is too late");
}

/// A body is dropped with the loss.
#[test]
fn a_body_does_not_put_off_the_end_of_a_lost_lease() {
    let clock = ManualClock::new();
    let lease = held_on(&clock);
    assert_eq!(lease.enter(options()), Phase::Held);
    clock.advance(TTL);
    assert_eq!(closed(&lease), Some(Phase::Lost(Loss::Expired)));
}

#[test]
fn a_lease_is_renewed_while_its_owner_a_body_or_kept_work_needs_it() {
    let unrenewed = LeaseOptions::new(TTL, false, None);
    for (owner, keeps, goes_on) in [
        (unrenewed, false, false),
        (unrenewed, true, true),
        (options(), false, true),
    ] {
        let clock = ManualClock::new();
        let lease = lease_on(&clock, owner);
        lease.ask(clock.now() + TTL);
        assert!(lease.grant(clock.now(), FencingToken::new(1).expect("a token")));
        for _ in 0..2 {
            assert_eq!(lease.enter(options()), Phase::Held);
        }
        assert_eq!(lease.enter(unrenewed), Phase::Held);
        if keeps {
            assert_eq!(lease.keep(), Phase::Held);
        }
        assert!(!lease.leave(options()) && lease.options().renews());
        assert!(!lease.leave(options()));
        assert_eq!(lease.options().renews(), goes_on);
    }
}
