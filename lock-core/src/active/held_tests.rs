//! A held lease: its roles, its group, its successor, and what makes its next renewal due.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use super::tests::lease_on;
use super::{ActiveLease, Closed, Role};
use crate::base::clock::{Clock, ServerTime};
use crate::base::fence::FencingToken;
use crate::base::manual_clock::ManualClock;
use crate::base::options::Interop;
use crate::base::token::{Address, TokenSource};
use crate::lease::{Action, Extended, LeaseOptions, Loss, Phase};

const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(30);

fn options() -> LeaseOptions {
    LeaseOptions::new(TTL, true, None)
}

fn fence(number: u64) -> FencingToken {
    FencingToken::new(number).expect("a token")
}

fn granted(lease: Arc<ActiveLease>, number: u64) -> Arc<ActiveLease> {
    let now = lease.now();
    lease.ask(now + TTL);
    assert!(lease.grant(now, fence(number)));
    lease
}

fn held(clock: &ManualClock) -> Arc<ActiveLease> {
    granted(lease_on(clock, options()), 7)
}

/// A held lease that was renewed once, after which the store watches its key.
fn watched(clock: &ManualClock) -> Arc<ActiveLease> {
    let lease = held(clock);
    clock.advance(10 * SECOND);
    assert_eq!(lease.poll(clock.now()), Action::Renew);
    assert!(!lease.renewed(clock.now(), Extended::Yes));
    clock.advance(SECOND);
    lease
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_hint_makes_a_renewal_due_and_a_store_that_watches_no_more_within_a_second() {
    let clock = ManualClock::new();
    let lease = watched(&clock);
    lease.hint();
    assert_eq!(lease.due(), Some(clock.now()));
    let lease = watched(&clock);
    lease.renew_now();
    assert_eq!(lease.due(), Some(clock.now()));
    let lease = watched(&clock);
    lease.watch_again();
    let spread = Duration::from_millis(lease.token.seed() % 1_000);
    assert_eq!(lease.due(), Some(clock.now() + spread));
}

#[test]
fn a_tick_and_a_leadership_leave_no_record_and_have_no_ticket() {
    let lease = held(&ManualClock::new());
    assert_eq!(lease.role(), Role::Lock);
    for role in [Role::Tick, Role::Leadership] {
        lease.serves_as(role);
        assert_eq!(lease.role(), role);
        assert!(role.check_record().is_err() && role.check_ticket().is_err());
    }
}

#[test]
fn a_cooldown_until_a_time_keeps_the_key() {
    let lease = held(&ManualClock::new());
    assert!(!lease.keeps_the_key());
    lease.cool_until(ServerTime(1));
    assert!(lease.keeps_the_key());
}

#[test]
fn a_lease_leaves_a_gap_when_one_is_due_and_its_owner_shares_the_key_with_other_libraries() {
    // Gaps are 1 037 ms apart by the clock of the store.
    for (number, interop, gap) in [
        (1_036_999, Interop::On, true),
        (1_036_999, Interop::Off, false),
        (1, Interop::On, false),
    ] {
        let clock = ManualClock::new();
        let lease = granted(lease_on(&clock, options().interop(interop)), number);
        clock.advance(Duration::from_millis(1));
        assert_eq!(lease.succeeded_by(options()).is_none(), gap);
        let lease = granted(lease_on(&clock, options().interop(interop)), number);
        clock.advance(Duration::from_millis(1));
        assert!(matches!(lease.close(), Closed::Now { gap: leaves, .. } if leaves == gap));
    }
}

#[test]
fn only_tasks_that_still_watch_a_lease_are_woken_by_its_end() {
    let lease = held(&ManualClock::new());
    let woken = [(); 2].map(|()| Arc::new(Woken::default()));
    let mut ids = [None; 2];
    for (id, woken) in ids.iter_mut().zip(&woken) {
        lease.wake_on_change(id, &Waker::from(Arc::clone(woken)));
    }
    lease.forget_waker(ids[0]);
    lease.wake_waiting();
    assert_eq!(woken.map(|woken| woken.0.load(Ordering::SeqCst)), [0, 1]);
}

#[test]
fn a_future_that_was_probed_is_unpolled_until_it_watches_again() {
    let lease = lease_on(&ManualClock::new(), options());
    assert!(!lease.is_unpolled() && lease.probe().is_some());
    assert!(lease.is_unpolled() && lease.probe().is_none());
    lease.wake_on_change(&mut None, Waker::noop());
    assert!(!lease.is_unpolled());
}

#[test]
fn a_late_duplicate_is_noted_and_passed_on() {
    let lease = held(&ManualClock::new());
    assert!(!lease.has_late_duplicate());
    lease.note_late_duplicate();
    let next = lease.succeeded_by(options()).expect("held");
    assert!(lease.has_late_duplicate() && next.has_late_duplicate());
}

#[test]
fn a_waiter_that_is_given_the_key_holds_it() {
    let clock = ManualClock::new();
    let lease = lease_on(&clock, options());
    assert!(lease.take_over(clock.now() + 2 * SECOND, fence(7)));
    assert_eq!(lease.observe(), (Phase::Held, false));
    assert_eq!(lease.fence(), Some(fence(7)));
}

#[test]
fn the_next_owner_has_the_next_fencing_token_and_a_time_of_its_own() {
    let clock = ManualClock::new();
    let lease = held(&clock);
    clock.advance(Duration::from_millis(5));
    assert_eq!(lease.held_for(), Duration::from_millis(5));
    let next = lease.succeeded_by(options()).expect("held");
    assert_eq!(next.fence(), Some(fence(8)));
    assert_eq!(next.held_for(), Duration::ZERO);
    assert_eq!(next.in_handoff_since(), Some(clock.now()));
    assert!(next.pick_up() && !next.pick_up());
    assert_eq!(next.in_handoff_since(), None);
}

#[test]
fn a_lease_with_a_body_inside_goes_to_no_other_owner() {
    let lease = held(&ManualClock::new());
    assert_eq!(lease.enter(options()), Phase::Held);
    assert!(lease.succeeded_by(options()).is_none());
}

/// The queue is locked when a lease is passed on, and the recorder of losses is foreign code.
#[test]
fn the_end_of_a_lease_that_is_not_passed_on_is_noticed_by_its_close() {
    let clock = ManualClock::new();
    let max_hold = Duration::from_millis(5);
    let short = LeaseOptions::new(TTL, true, Some(max_hold));
    let lease = granted(lease_on(&clock, short), 7);
    clock.advance(max_hold);
    assert!(lease.succeeded_by(options()).is_none());
    assert_eq!(lease.noticed_phase(), Phase::Held);
    assert_eq!(lease.observe(), (Phase::Lost(Loss::MaxHold), true));
}

#[test]
fn a_lease_that_a_transaction_may_check_goes_to_no_other_owner() {
    let lease = held(&ManualClock::new());
    lease.will_be_checked();
    assert!(lease.succeeded_by(options()).is_none());
}

#[test]
fn a_look_for_waiters_is_due_once_and_begins_the_count_again() {
    let clock = ManualClock::new();
    let lease = held(&clock);
    assert!(!lease.is_to_look());
    clock.advance(Duration::from_millis(15));
    assert!(lease.is_to_look() && !lease.is_to_look());
    lease.found_no_waiter(clock.now());
    clock.advance(Duration::from_millis(19));
    assert!(lease.succeeded_by(options()).is_some());
}

/// The leases of a lock of several keys.
fn group(clock: &ManualClock) -> [Arc<ActiveLease>; 3] {
    let address = Address::random();
    let leases = ["x", "y", "z"].map(|key| {
        let token = TokenSource::new(address).fresh_at(address, clock.now());
        let clock = Clock::Manual(clock.clone());
        granted(ActiveLease::new(&key.into(), token, options(), &clock), 7)
    });
    leases[0].lead(leases[1..].to_vec());
    leases
}

#[test]
fn each_lease_of_several_keys_knows_the_others() {
    let [x, y, z] = group(&ManualClock::new());
    let keys = |lease: &ActiveLease| {
        let others = lease.others();
        let keys = others.iter().map(|other| other.key.to_string());
        keys.collect::<Vec<_>>().concat()
    };
    assert_eq!([&x, &y, &z].map(|lease| keys(lease)), ["yz", "xz", "xy"]);
    assert!(x.covers("x") && x.covers("z") && !x.covers("w"));
    assert!(y.covers("y") && !y.covers("z"));
    assert!(held(&ManualClock::new()).others().is_empty());
}

#[test]
fn a_lock_of_several_keys_lasts_as_long_as_the_first_of_them_to_end() {
    let clock = ManualClock::new();
    let [x, y, z] = group(&clock);
    clock.advance(10 * SECOND);
    for lease in [&x, &y] {
        assert_eq!(lease.poll(clock.now()), Action::Renew);
        assert!(!lease.renewed(clock.now(), Extended::Yes));
    }
    assert!(z.remaining() < x.remaining());
    assert_eq!(x.remaining_of_all(), z.remaining());
}

#[test]
fn a_lease_is_lost_with_another_one_of_its_lock_once() {
    let [_, y, _] = group(&ManualClock::new());
    assert!(y.lose_with(Loss::OtherKey));
    assert_eq!(y.observe(), (Phase::Lost(Loss::OtherKey), false));
    assert!(!y.lose_with(Loss::OtherKey));
}

#[test]
fn a_lease_that_joins_has_the_fencing_token_and_the_time_of_all() {
    let clock = ManualClock::new();
    let lease = held(&clock);
    clock.advance(SECOND);
    lease.join(fence(9), LeaseOptions::new(TTL, false, None));
    assert_eq!(
        (lease.fence(), lease.held_for()),
        (Some(fence(9)), Duration::ZERO)
    );
    assert!(!lease.options().renews());
}
