use super::*;
use crate::base::options::Watch;

const SECOND: Duration = Duration::from_secs(1);
pub(super) const START: Moment = Moment(1_000_000_000_000);

pub(super) fn after(span: Duration) -> Moment {
    START + span
}

pub(super) fn held(options: LeaseOptions) -> Lease {
    let mut lease = Lease::new(options);
    assert!(lease.grant(START, START));
    lease
}

fn renewing(ttl: Duration) -> Lease {
    held(LeaseOptions::new(ttl, true, None))
}

#[test]
fn a_grant_that_comes_after_its_ttl_counts_for_nothing() {
    let mut lease = Lease::new(LeaseOptions::new(SECOND, true, None));
    assert!(!lease.grant(START, after(Duration::from_millis(988))));
    assert_eq!(lease.phase(), Phase::Asking);
}

#[test]
fn renewals_are_a_third_of_the_ttl_apart_and_counted_from_the_send() {
    let mut lease = renewing(9 * SECOND);
    assert_eq!(lease.due(), Some(after(3 * SECOND)));
    let sent = after(3 * SECOND);
    assert_eq!(lease.poll(sent), Action::Renew);
    assert!(!lease.renewed(sent, Extended::Yes, sent + SECOND));
    assert_eq!(lease.due(), Some(after(6 * SECOND)));
}

#[test]
fn a_lease_with_a_long_ttl_is_renewed_every_ten_seconds() {
    assert_eq!(renewing(3_600 * SECOND).due(), Some(after(10 * SECOND)));
}

#[test]
fn one_failed_renewal_does_not_end_the_lease_and_is_repeated_soon() {
    let mut lease = renewing(9 * SECOND);
    assert_eq!(lease.poll(after(3 * SECOND)), Action::Renew);
    assert!(!lease.renewed(after(3 * SECOND), Extended::Unknown, after(4 * SECOND)));
    assert_eq!(lease.due(), Some(after(Duration::from_millis(4_750))));
    assert_eq!(lease.poll(after(5 * SECOND)), Action::Renew);
    assert!(!lease.renewed(after(5 * SECOND), Extended::Yes, after(5 * SECOND)));
    assert_eq!(lease.phase(), Phase::Held);
    assert_eq!(
        lease.remaining(after(5 * SECOND)),
        Duration::from_millis(8_908)
    );
}

#[test]
fn a_hint_is_about_an_earlier_lease_until_the_first_renewal() {
    let mut lease = renewing(30 * SECOND);
    lease.hint(after(SECOND));
    assert_eq!(lease.due(), Some(after(10 * SECOND)));
    assert_eq!(lease.poll(after(10 * SECOND)), Action::Renew);
    assert!(!lease.renewed(after(10 * SECOND), Extended::Yes, after(10 * SECOND)));
    lease.hint(after(11 * SECOND));
    assert_eq!(lease.due(), Some(after(11 * SECOND)));
    assert_eq!(lease.poll(after(11 * SECOND)), Action::Renew);
    assert!(lease.renewed(after(11 * SECOND), Extended::NotOurs, after(11 * SECOND)));
    assert_eq!(lease.phase(), Phase::Lost(Loss::NotOurs));
    lease.hint(after(12 * SECOND));
    assert_eq!(lease.due(), None);
}

fn watched_at_once() -> Lease {
    let options = LeaseOptions::new(30 * SECOND, true, None).watch(Watch::AtOnce);
    let mut lease = held(options);
    assert_eq!(lease.poll(START), Action::Renew, "right after the grant");
    lease
}

#[test]
fn two_renewals_by_hints_are_a_quarter_of_a_second_apart() {
    let mut lease = watched_at_once();
    let millis = |count| after(Duration::from_millis(count));
    assert!(!lease.renewed(START, Extended::Yes, START));
    for (hint, due) in [
        (100, 100),
        (110, 350),
        (349, 350),
        (360, 600),
        (2_000, 2_000),
    ] {
        lease.hint(millis(hint));
        assert_eq!(lease.due(), Some(millis(due)), "{hint}");
        if due <= hint + 1 {
            assert_eq!(lease.poll(millis(due)), Action::Renew);
            assert!(!lease.renewed(millis(due), Extended::Yes, millis(due)));
        }
        if due == 600 {
            assert_eq!(lease.poll(millis(600)), Action::Renew);
            assert!(!lease.renewed(millis(600), Extended::Yes, millis(600)));
        }
    }
}

#[test]
fn a_loss_of_all_data_during_a_renewal_makes_another_renewal_due() {
    let mut lease = renewing(30 * SECOND);
    assert_eq!(lease.poll(after(10 * SECOND)), Action::Renew);
    lease.renew_by(after(10 * SECOND));
    assert!(!lease.renewed(after(10 * SECOND), Extended::Yes, after(11 * SECOND)));
    assert_eq!(lease.due(), Some(after(11 * SECOND)));
}

#[test]
fn a_hint_during_a_renewal_is_followed_by_another_one() {
    let mut lease = watched_at_once();
    lease.hint(START);
    assert!(!lease.renewed(START, Extended::Yes, after(SECOND)));
    assert_eq!(lease.due(), Some(after(SECOND)));
}

#[test]
fn a_lease_that_is_watched_again_is_renewed_earlier_and_an_unwatched_one_is_not() {
    let mut lease = renewing(30 * SECOND);
    lease.watch_again(after(SECOND));
    assert_eq!(lease.due(), Some(after(10 * SECOND)));
    let mut lease = watched_at_once();
    assert!(!lease.renewed(START, Extended::Yes, START));
    lease.watch_again(after(SECOND));
    assert_eq!(lease.due(), Some(after(SECOND)));
    // Its next owner inside the process is watched already.
    let next = lease.pass(LeaseOptions::new(30 * SECOND, true, None), START);
    let mut next = next.expect("alike");
    next.hint(after(Duration::from_millis(500)));
    assert_eq!(next.due(), Some(after(Duration::from_millis(500))));
}

#[test]
fn the_lease_is_lost_at_its_deadline_and_not_before() {
    let mut lease = renewing(10 * SECOND);
    assert_eq!(lease.poll(after(4 * SECOND)), Action::Renew);
    assert!(!lease.observe(after(Duration::from_millis(9_897))));
    assert_eq!(
        lease.poll(after(Duration::from_millis(9_898))),
        Action::Lost
    );
    assert_eq!(lease.phase(), Phase::Lost(Loss::Expired));
    assert_eq!(lease.due(), None);
}

#[test]
fn a_renewal_that_answers_after_the_deadline_does_not_bring_the_lease_back() {
    let mut lease = renewing(10 * SECOND);
    assert_eq!(lease.poll(after(4 * SECOND)), Action::Renew);
    assert!(lease.renewed(after(4 * SECOND), Extended::Yes, after(11 * SECOND)));
    assert_eq!(lease.phase(), Phase::Lost(Loss::Expired));
}

#[test]
fn a_renewal_answered_with_not_ours_loses_the_lease_at_once() {
    let mut lease = renewing(10 * SECOND);
    assert_eq!(lease.poll(after(4 * SECOND)), Action::Renew);
    assert!(lease.renewed(after(4 * SECOND), Extended::NotOurs, after(4 * SECOND)));
    assert_eq!(lease.phase(), Phase::Lost(Loss::NotOurs));
}

#[test]
fn an_overtaken_answer_does_not_shorten_the_lease() {
    let mut lease = renewing(10 * SECOND);
    assert!(!lease.renewed(after(5 * SECOND), Extended::Yes, after(5 * SECOND)));
    let remaining = lease.remaining(after(5 * SECOND));
    assert!(!lease.renewed(after(4 * SECOND), Extended::Yes, after(5 * SECOND)));
    assert_eq!(lease.remaining(after(5 * SECOND)), remaining);
}

#[test]
fn a_renewal_that_is_answered_after_its_time_counts_from_its_send() {
    let mut lease = renewing(9 * SECOND);
    let sent = after(3 * SECOND);
    assert_eq!(lease.poll(sent), Action::Renew);
    assert!(!lease.renewed(sent, Extended::Unknown, after(6 * SECOND)));
    let due = lease.due();
    assert!(!lease.renewed_late(sent, Extended::Yes, 9 * SECOND, after(7 * SECOND)));
    let remaining = lease.remaining(after(7 * SECOND));
    assert_eq!(remaining, Duration::from_millis(4_908));
    assert_eq!(lease.due(), due, "the next renewal goes on as planned");
    assert!(lease.renewed_late(sent, Extended::Yes, 60 * SECOND, after(12 * SECOND)));
    assert_eq!(lease.phase(), Phase::Lost(Loss::Expired));
    assert!(!lease.renewed_late(sent, Extended::Yes, 60 * SECOND, after(12 * SECOND)));
}

#[test]
fn a_lease_is_lost_by_a_refusal_of_its_renewal_that_comes_after_its_time() {
    let mut lease = renewing(9 * SECOND);
    let sent = after(3 * SECOND);
    assert!(!lease.renewed_late(sent, Extended::Unknown, 9 * SECOND, after(6 * SECOND)));
    assert!(lease.renewed_late(sent, Extended::NotOurs, 9 * SECOND, after(7 * SECOND)));
    assert_eq!(lease.phase(), Phase::Lost(Loss::NotOurs));
}

#[test]
fn a_released_lease_is_not_renewed_by_a_late_answer() {
    let mut lease = renewing(10 * SECOND);
    assert_eq!(lease.poll(after(4 * SECOND)), Action::Renew);
    assert_eq!(lease.close(after(4 * SECOND)), Phase::Held);
    assert!(!lease.renewed(after(4 * SECOND), Extended::NotOurs, after(4 * SECOND)));
    assert_eq!((lease.phase(), lease.due()), (Phase::Closed, None));
}

#[test]
fn without_renewal_only_the_deadline_is_due() {
    let lease = held(LeaseOptions::new(10 * SECOND, false, None));
    assert_eq!(lease.due(), Some(after(Duration::from_millis(9_898))));
}

#[test]
fn max_hold_is_counted_from_the_answer_and_ends_renewing() {
    let mut lease = Lease::new(LeaseOptions::new(10 * SECOND, true, Some(2 * SECOND)));
    assert!(lease.grant(START, after(SECOND)));
    assert!(!lease.observe(after(2 * SECOND)));
    assert_eq!(lease.poll(after(3 * SECOND)), Action::Lost);
    assert_eq!(lease.phase(), Phase::Lost(Loss::MaxHold));
}

#[test]
fn loss_is_one_way() {
    let mut lease = renewing(10 * SECOND);
    assert!(lease.observe(after(10 * SECOND)));
    assert!(!lease.observe(START));
    assert_eq!(lease.close(START), Phase::Lost(Loss::Expired));
    assert_eq!(lease.phase(), Phase::Lost(Loss::Expired));
}

#[test]
fn an_overdue_answer_is_reported_once() {
    let mut lease = Lease::new(LeaseOptions::new(SECOND, true, None));
    lease.ask(after(SECOND));
    assert_eq!(lease.poll(after(SECOND)), Action::Overdue);
    assert_eq!(lease.poll(after(SECOND)), Action::Nothing);
}

#[test]
fn a_lock_held_for_ten_ttls_causes_one_warning() {
    let mut lease = renewing(SECOND);
    let mut warnings = 0;
    for tenth in 0..200 {
        let now = after(tenth * SECOND / 10);
        match lease.poll(now) {
            Action::Renew => assert!(!lease.renewed(now, Extended::Yes, now)),
            Action::HeldLong => warnings += 1,
            action => assert_eq!(action, Action::Nothing),
        }
    }
    assert_eq!(warnings, 1);
}

#[test]
fn in_every_order_of_renewals_the_owner_stops_before_the_server_frees_the_key() {
    // The test covers every order of renewals that are answered, unanswered or late. The server
    // ends the lease `ttl` after it *received* a send, and the owner must never hold the lease past
    // that.
    let ttl = Duration::from_millis(300);
    for plan in 0..3_u32.pow(6) {
        let mut lease = renewing(ttl);
        let mut server_end = START + ttl;
        let mut steps = plan;
        let mut now = START;
        while let Some(due) = lease.due() {
            now = now.max(due);
            match lease.poll(now) {
                Action::Renew => {
                    let sent = now;
                    let (answer, delay) = match steps % 3 {
                        0 => (Extended::Yes, 1),
                        1 => (Extended::Unknown, 40),
                        _ => (Extended::Yes, 90),
                    };
                    steps /= 3;
                    if answer == Extended::Yes {
                        server_end = server_end.max(sent + ttl);
                    }
                    now = now + Duration::from_millis(delay);
                    lease.renewed(sent, answer, now);
                }
                Action::Lost => assert!(now < server_end),
                _ => {}
            }
            if now > START + ttl * 8 {
                break;
            }
        }
    }
}

#[test]
fn a_nested_body_with_a_longer_ttl_has_the_lease_extended_at_once() {
    let mut lease = renewing(3 * SECOND);
    let now = after(SECOND / 2);
    lease.serve(LeaseOptions::new(60 * SECOND, true, None), now);
    assert_eq!(lease.poll(now), Action::Renew);
    assert_eq!(lease.renewing_to(), 60 * SECOND);
    assert!(!lease.renewed(now, Extended::Yes, now));
    assert_eq!(lease.remaining(now), Duration::from_millis(59_398));
}

#[test]
fn a_nested_body_with_no_longer_ttl_causes_no_renewal() {
    let mut lease = renewing(9 * SECOND);
    lease.serve(LeaseOptions::new(9 * SECOND, true, None), after(SECOND));
    assert_eq!(lease.due(), Some(after(3 * SECOND)));
    lease.serve(LeaseOptions::new(5 * SECOND, false, None), after(SECOND));
    assert_eq!(lease.due(), Some(after(3 * SECOND)));
}

#[test]
fn a_renewal_counts_for_the_ttl_that_was_sent() {
    let mut lease = renewing(3 * SECOND);
    let sent = after(SECOND);
    assert_eq!(lease.poll(sent), Action::Renew);
    lease.serve(LeaseOptions::new(60 * SECOND, true, None), sent);
    assert!(!lease.renewed(sent, Extended::Yes, sent));
    assert_eq!(lease.remaining(sent), Duration::from_millis(2_968));
    assert_eq!(
        lease.poll(sent),
        Action::Renew,
        "a second renewal requests the longer ttl"
    );
    assert_eq!(lease.renewing_to(), 60 * SECOND);
}

#[test]
fn a_lease_that_is_not_renewed_is_extended_once_for_a_nested_body() {
    let mut lease = held(LeaseOptions::new(3 * SECOND, false, None));
    let now = after(2 * SECOND);
    lease.serve(LeaseOptions::new(3 * SECOND, false, None), now);
    assert_eq!(lease.poll(now), Action::Renew);
    assert!(!lease.renewed(now, Extended::Yes, now));
    assert_eq!(lease.remaining(now), Duration::from_millis(2_968));
    assert_eq!(lease.poll(now + SECOND), Action::Nothing);
}

#[test]
fn renewing_ends_with_the_last_body_that_needs_it() {
    let mut lease = held(LeaseOptions::new(3 * SECOND, false, None));
    lease.serve(LeaseOptions::new(3 * SECOND, true, None), START);
    assert_eq!(lease.due(), Some(after(SECOND)));
    lease.stop_renewing();
    assert_eq!(lease.poll(after(SECOND)), Action::Nothing);
}

#[test]
fn a_lease_that_was_handed_over_is_extended_to_its_ttl_even_without_renewal() {
    for renew in [true, false] {
        let mut lease = Lease::new(LeaseOptions::new(60 * SECOND, renew, None));
        assert!(lease.take_over(after(2 * SECOND), after(SECOND / 2)));
        assert_eq!(lease.remaining(after(SECOND / 2)), SECOND * 3 / 2);
        let now = after(SECOND);
        assert_eq!(lease.due(), Some(now));
        assert_eq!(lease.poll(now), Action::Renew);
        assert!(!lease.renewed(now, Extended::Yes, now));
        assert_eq!(lease.remaining(now), Duration::from_millis(59_398));
        let next = lease.poll(after(11 * SECOND)) == Action::Renew;
        assert_eq!(next, renew);
    }
}

#[test]
fn a_hand_over_that_is_nearly_over_counts_for_nothing() {
    let mut lease = Lease::new(LeaseOptions::new(60 * SECOND, true, None));
    assert!(!lease.take_over(after(2 * SECOND), after(Duration::from_millis(1_501))));
    assert_eq!(lease.phase(), Phase::Asking);
}

#[test]
fn an_extension_that_fails_is_repeated_several_times_before_a_short_grant_ends() {
    let mut lease = Lease::new(LeaseOptions::new(60 * SECOND, true, None));
    assert!(lease.take_over(after(2 * SECOND), START));
    let mut tries = 0;
    while let Some(now) = lease.due() {
        match lease.poll(now) {
            Action::Renew => tries += 1,
            Action::Lost => break,
            other => panic!("{other:?}"),
        }
        assert!(!lease.renewed(now, Extended::Unknown, now));
    }
    assert!(tries > 3, "{tries}");
}

/// The collecting may last longer than the ttl, and the longest hold is counted from its end.
#[test]
fn a_lease_is_renewed_and_not_ended_while_the_other_keys_of_its_lock_are_collected() {
    let options = LeaseOptions::new(9 * SECOND, false, Some(SECOND));
    let mut lease = held(options.while_collecting());
    assert_eq!(lease.poll(after(2 * SECOND)), Action::Nothing);
    assert_eq!(lease.poll(after(3 * SECOND)), Action::Renew);
    assert!(!lease.renewed(after(3 * SECOND), Extended::Yes, after(3 * SECOND)));
    assert_eq!(lease.poll(after(6 * SECOND)), Action::Renew);
}
