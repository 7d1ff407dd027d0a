//! Leases that pass to another task, and leases of which the options change.

use super::tests::{START, after, held};
use super::*;
use crate::base::options::{Interop, Watch};

const SECOND: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);
const TTL: Duration = Duration::from_secs(30);

fn options(renew: bool) -> LeaseOptions {
    LeaseOptions::new(TTL, renew, None)
}

#[test]
fn a_lease_passes_only_between_owners_that_renew_it_to_the_same_ttl() {
    let longer = LeaseOptions::new(TTL + SECOND, true, None);
    for (own, next) in [
        (options(true), options(false)),
        (options(false), options(true)),
        (options(true), longer),
    ] {
        let mut lease = held(own);
        assert!(lease.pass(next, START).is_none());
        assert_eq!(lease.phase(), Phase::Held);
    }
    let mut lease = held(options(true));
    assert!(lease.pass(options(true), START).is_some());
    assert!(lease.pass(options(true), START).is_none(), "it is closed");
}

#[test]
fn a_lease_passes_while_half_of_a_grant_is_left() {
    let last = START + (held(options(true)).remaining(START) - GRANT / 2);
    for (now, passes) in [(last, true), (last + NANO, false), (last + GRANT, false)] {
        let next = held(options(true)).pass(options(true), now);
        assert_eq!(next.is_some(), passes);
    }
}

#[test]
fn a_passed_lease_is_renewed_as_planned_and_at_once_only_to_have_its_key_watched() {
    let watching = options(true).watch(Watch::AtOnce);
    for (next, due) in [(options(true), after(10 * SECOND)), (watching, START)] {
        let mut lease = held(options(true));
        let passed = lease.pass(next, START).expect("alike");
        assert_eq!(passed.due(), Some(due));
    }
    let mut watched = held(watching);
    assert_eq!(watched.poll(START), Action::Renew);
    assert!(!watched.renewed(START, Extended::Yes, START));
    let passed = watched.pass(watching, START).expect("alike");
    assert_eq!(passed.due(), Some(after(10 * SECOND)));
}

#[test]
fn a_hand_over_counts_from_a_quarter_of_a_grant_on() {
    for (left, counts) in [(GRANT / 4, true), (GRANT / 4 - NANO, false)] {
        let mut lease = Lease::new(options(true));
        assert_eq!(lease.take_over(START + left, START), counts);
    }
}

#[test]
fn the_options_say_whether_a_lease_is_renewed_and_leaves_gaps() {
    for renew in [true, false] {
        assert_eq!(options(renew).renews(), renew);
        assert_eq!(held(options(renew)).options.renews(), renew);
    }
    for (interop, gaps) in [(Interop::On, true), (Interop::Off, false)] {
        let options = options(true).interop(interop);
        assert_eq!(options.leaves_gaps(), gaps);
        assert_eq!(held(options).options.leaves_gaps(), gaps);
    }
}

#[test]
fn a_lease_of_several_takes_the_options_of_the_lock_when_all_keys_are_there() {
    let collected = || held(options(true).while_collecting());
    let mut renewed = collected();
    let longest = LeaseOptions::new(TTL, true, Some(5 * SECOND));
    renewed.join(longest, after(SECOND));
    assert_eq!(renewed.due(), Some(after(6 * SECOND)));
    let mut renewed = collected();
    renewed.join(options(true), after(SECOND));
    assert_eq!(renewed.due(), Some(after(10 * SECOND)));
    // Without renewal, the lease is lengthened once more if less than two thirds of the ttl are left.
    let ends = START + collected().remaining(START);
    let late = after(Duration::from_millis(9_950));
    for (now, due) in [(after(9 * SECOND), ends), (late, late)] {
        let mut unrenewed = collected();
        unrenewed.join(options(false), now);
        assert_eq!(unrenewed.due(), Some(due));
    }
}

#[test]
fn a_nested_body_has_the_lease_renewed_if_it_wants_to() {
    for renew in [true, false] {
        let mut lease = held(options(false));
        let ends = lease.due();
        lease.serve(options(renew), START);
        assert_eq!(lease.options.renews(), renew);
        let due = if renew {
            Some(after(10 * SECOND))
        } else {
            ends
        };
        assert_eq!(lease.due(), due);
    }
}
