//! The model finds each seeded fault, in the smallest world that shows it.

use super::explore::explore;
use super::fault::ModelFault;
use super::world::{Limits, World, Wrong};
use super::worlds::{
    PLAIN, behind_a_gap, behind_stopped, first_after_the_clock_went_back, refused_a_place,
};

/// Searches until a check fails; returns the violation and the number of steps.
fn found(fault: ModelFault, world: Limits) -> (Wrong, usize) {
    let limits = Limits {
        fault: Some(fault),
        ..world
    };
    let calm = u64::from(limits.timers);
    let found = explore::<World>(&limits, calm);
    let Some((wrong, path)) = found.wrong else {
        panic!(
            "the fault {fault:?} was not found in {} states",
            found.states
        );
    };
    println!(
        "{fault:?}: {wrong:?} after {} steps, {} states",
        path.len(),
        found.states
    );
    (wrong, path.len())
}

macro_rules! found {
    ($($name:ident: $fault:ident, $wrong:ident, $world:expr;)+) => {$(
        #[test]
        fn $name() {
            let (wrong, _) = found(ModelFault::$fault, $world);
            assert_eq!(wrong, Wrong::$wrong);
        }
    )+};
}

const TWICE: Limits = Limits { leases: 2, ..PLAIN };
const LONGER: Limits = Limits {
    processes: 1,
    ticks: 6,
    longer_millis: Some(5_025),
    ..PLAIN
};
const GAPS: Limits = Limits {
    gaps: true,
    ..TWICE
};
const UNDONE: Limits = Limits {
    cancels: true,
    unanswered: true,
    ..PLAIN
};

found! {
    no_margin_for_drift: NoDriftMargin, OwnerWithoutKey, PLAIN;
    a_margin_for_the_grant_alone:
        DriftMarginForGrantOnly, OwnerWithoutKey, Limits { ticks: 6, ..PLAIN };
    a_deadline_counted_from_the_push: DeadlineFromPush, OwnerWithoutKey, PLAIN;
    an_anchor_at_the_answer: AnchorFromAnswer, OwnerWithoutKey, PLAIN;
    an_end_that_is_reported_too_late: EndReportedTooLate, OwnerWithoutKey, PLAIN;
    a_high_water_mark_that_is_not_raised: HighWaterMarkNotRaised, FenceNotHigher, TWICE;
    a_superseded_release_that_is_forgotten:
        SupersededWithoutHighWaterMark, FenceNotHigher, TWICE;
    a_token_above_the_clock_that_is_forgotten: FutureTokenNotRecorded, FenceNotHigher,
        Limits { step: Some(-100_000), rounds: 1, leases: 3, ..PLAIN };
    a_key_granted_below_the_high_water_mark: GrantBelowHighWaterMark, FenceNotHigher, PLAIN;
    a_key_handed_to_a_dead_process:
        HandedToDeadProcess, HandedToDeadProcess, Limits { disruptions: 1, ..PLAIN };
    a_repeated_acquire_that_does_not_extend: RepeatedAcquireDoesNotExtend, OwnerWithoutKey,
        Limits { rounds: 3, ..PLAIN };
    a_late_acquire_that_shortens: LateAcquireShortens, OwnerWithoutKey,
        Limits { unanswered: true, ..LONGER };
    a_late_renewal_that_shortens: LateRenewalShortens, OwnerWithoutKey,
        Limits { unanswered: true, ..LONGER };
    a_release_that_does_not_compare: ReleaseDoesNotCompare, ForeignKeyTouched, UNDONE;
    a_gap_that_does_not_compare: GapDoesNotCompare, ForeignKeyTouched,
        Limits { disruptions: 1, ..GAPS };
    a_gap_that_is_handed_over: GapHandedOver, GapFilled, GAPS;
    a_gap_without_the_high_water_mark: GapWithoutHighWaterMark, FenceNotHigher, GAPS;
    an_acquire_that_supersedes_any_owner: SupersedeDoesNotCompare, ForeignKeyTouched,
        Limits { cancels: true, ..TWICE };
    two_managers_on_one_channel: SharedChannel, OwnerWithoutKey, PLAIN;
    a_cancelled_waiter_that_is_not_undone: CancelledNotUndone, Abandoned, UNDONE;
    a_late_duplicate_that_is_forgotten: LateDuplicateForgotten, Abandoned, UNDONE;
    an_answer_to_an_earlier_request: AnswerToEarlierRequest, OwnerWithoutKey,
        Limits { unanswered: true, ..PLAIN };
    a_renewal_that_counts_for_a_newer_ttl: RenewalCountsForNewerTtl, OwnerWithoutKey, LONGER;
    a_lease_passed_on_after_its_end: PassedAfterEnd, OwnerWithoutKey,
        Limits { line: 1, ..TWICE };
    a_lease_passed_on_without_bound: PassedWithoutBound, PassedOverTheQueue,
        Limits { line: 3, ticks: 0, ..PLAIN };
}

/// A world in which a lease has a fencing token above the clock.
///
/// The lease passes from task to task, and expires without a release.
const BEHIND: Limits = Limits {
    processes: 1,
    rounds: 1,
    leases: 3,
    line: 1,
    step: Some(-100_000),
    ..PLAIN
};
const COOLING: Limits = Limits {
    unanswered: true,
    cooldown_millis: Some(1_500),
    ..PLAIN
};

found! {
    tokens_that_are_not_reserved: PassesNotReserved, FenceNotHigher, BEHIND;
    a_cooldown_that_keeps_its_token: CooldownKeepsToken, CooldownCut, COOLING;
    a_cooldown_that_is_forgotten: PendingCooldownForgotten, CooldownCut,
        Limits { rounds: 3, ticks: 0, ..COOLING };
    a_cooldown_that_is_superseded: CooldownSuperseded, CooldownCut,
        Limits { leases: 2, ..COOLING };
}

const RECORDED: Limits = Limits {
    records: true,
    ..COOLING
};

found! {
    a_record_that_is_passed_on: RecordPassedOn, RanAfterRecord,
        Limits { line: 1, ..RECORDED };
    a_record_that_is_superseded: RecordSuperseded, CooldownCut,
        Limits { leases: 2, ..RECORDED };
    a_record_over_another_owner: RecordDoesNotCompare, ForeignKeyTouched,
        Limits { leases: 2, ..RECORDED };
    a_record_that_is_stored_where_no_key_is: RecordStoredIfAbsent, RecordCameBack,
        Limits { unanswered: false, disruptions: 2, ..RECORDED };
    a_release_beside_the_record: UndoBesideRecord, CooldownCut, RECORDED;
    a_record_that_keeps_its_queue: RecordKeepsItsQueue, QueuedBehindRecord, RECORDED;
    a_waiter_behind_a_record: QueuedBehindRecord, QueuedBehindRecord, RECORDED;
}

#[test]
fn a_hand_over_that_is_not_checked() {
    let waited = behind_stopped(3, 0, false, Some(ModelFault::HandOverNotChecked));
    assert!(waited > 20, "{waited} s");
}

#[test]
fn a_gap_whose_end_is_not_announced() {
    let waited = behind_a_gap(Some(ModelFault::GapNotAnnounced));
    assert!(waited > 20, "{waited} s");
}

#[test]
fn a_refused_ticket_that_is_believed() {
    let waited = refused_a_place(Some(ModelFault::RefusedTicketBelieved));
    assert!(waited > 20, "{waited} s");
}

#[test]
fn a_ticket_by_the_clock_alone() {
    let first = first_after_the_clock_went_back(Some(ModelFault::TicketsByClock));
    assert_eq!(first, 2);
}

/// The fault needs an owner that has handed the key over and died.
#[test]
fn a_grant_that_is_not_announced() {
    let waited = behind_stopped(1, 2, true, Some(ModelFault::GrantNotAnnounced));
    assert!(waited > 20, "{waited} s");
}
