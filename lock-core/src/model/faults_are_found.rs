//! What the model is made to do wrong, it finds: for each fault the smallest world that shows it.

use super::explore::explore;
use super::fault::Fault;
use super::simulate::simulate;
use super::world::{Limits, Wrong};
use super::worlds::{
    PLAIN, behind_a_gap, behind_stopped, by_lot, first_after_the_clock_went_back, refused_a_place,
};

/// Looks until something is wrong, and says what, and after how many steps.
fn found(fault: Fault, world: Limits) -> (Wrong, usize) {
    let limits = Limits {
        fault: Some(fault),
        ..world
    };
    let calm = u64::from(limits.timers);
    let found = explore(&limits, usize::MAX, calm);
    let Some((wrong, way)) = found.wrong else {
        panic!("{fault:?} is not found in {} states", found.states);
    };
    println!(
        "{fault:?}: {wrong:?} after {} steps, {} states",
        way.len(),
        found.states
    );
    (wrong, way.len())
}

macro_rules! found {
    ($($name:ident: $fault:ident, $wrong:ident, $world:expr;)+) => {$(
        #[test]
        fn $name() {
            let (wrong, _) = found(Fault::$fault, $world);
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
    no_margin_for_drift: NoDrift, WindowWithoutTheKey, PLAIN;
    a_margin_for_the_grant_alone:
        DriftOfTheGrantOnly, WindowWithoutTheKey, Limits { ticks: 6, ..PLAIN };
    a_deadline_counted_from_the_push: DeadlineFromThePush, WindowWithoutTheKey, PLAIN;
    an_anchor_at_the_answer: AnchorFromTheAnswer, WindowWithoutTheKey, PLAIN;
    an_end_that_is_said_later_than_it_is: EndSaidLater, WindowWithoutTheKey, PLAIN;
    a_mark_that_is_not_raised: MarkNotRaised, FenceNotHigher, TWICE;
    a_release_that_is_stepped_over_and_forgotten:
        SteppedOverWithoutTheMark, FenceNotHigher, TWICE;
    a_token_above_the_clock_that_is_forgotten: MarkNotWrittenAhead, FenceNotHigher,
        Limits { step: Some(-100_000), rounds: 1, leases: 3, ..PLAIN };
    a_key_given_below_the_mark: GivenBelowTheMark, FenceNotHigher, PLAIN;
    a_key_given_to_who_has_gone:
        GivenToWhoHasGone, GivenToWhoHasGone, Limits { mischief: 1, ..PLAIN };
    a_repeated_question_that_does_not_lengthen: OwnTokenIsNotLengthened, WindowWithoutTheKey,
        Limits { rounds: 3, ..PLAIN };
    a_late_question_that_cuts: ALateAskCutsTheLease, WindowWithoutTheKey,
        Limits { unanswered: true, ..LONGER };
    a_late_renewal_that_cuts: ALateRenewalCutsTheLease, WindowWithoutTheKey,
        Limits { unanswered: true, ..LONGER };
    a_release_that_does_not_compare: AnyTokenIsReleased, AnothersKeyTouched, UNDONE;
    a_gap_that_does_not_compare: AnyTokenIsVacated, AnothersKeyTouched,
        Limits { mischief: 1, ..GAPS };
    a_gap_that_is_given_away: AGapIsGivenAway, GapFilled, GAPS;
    a_gap_without_the_mark: VacatedWithoutTheMark, FenceNotHigher, GAPS;
    a_question_that_steps_over_anybody: AnyTokenIsSteppedOver, AnothersKeyTouched,
        Limits { cancels: true, ..TWICE };
    two_managers_on_one_channel: SharedChannel, WindowWithoutTheKey, PLAIN;
    a_cancelled_waiter_that_is_not_undone: CancelledIsNotUndone, NobodyLooksAfterIt, UNDONE;
    a_late_question_that_is_forgotten: LateTwinIsForgotten, NobodyLooksAfterIt, UNDONE;
    an_answer_to_another_question: AnswerToAnotherQuestion, WindowWithoutTheKey,
        Limits { unanswered: true, ..PLAIN };
    a_renewal_that_counts_for_a_newer_ttl: RenewalCountsForANewerTtl, WindowWithoutTheKey, LONGER;
    a_lease_passed_on_after_its_end: PassedAfterItsEnd, WindowWithoutTheKey,
        Limits { line: 1, ..TWICE };
    a_lease_passed_on_without_bound: PassedWithoutBound, PassedOverTheQueue,
        Limits { line: 3, ticks: 0, ..PLAIN };
}

/// A lease that is granted with a fencing token above the clock, goes on from task to task, and runs
/// out unheard of.
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
    tokens_that_are_not_reserved: PassesAreNotReserved, FenceNotHigher, BEHIND;
    a_cooldown_that_keeps_its_token: CooledByItsToken, CooldownCut, COOLING;
    a_cooldown_that_is_forgotten: CooldownUnderWayIsForgotten, CooldownCut,
        Limits { rounds: 3, ticks: 0, ..COOLING };
    a_cooldown_that_is_stepped_over: CooldownIsSteppedOver, CooldownCut,
        Limits { leases: 2, ..COOLING };
}

/// Too many steps to try all ways: these are drawn by lot.
fn found_by_lot(fault: Fault, world: impl Fn(u64) -> Limits) -> Option<Wrong> {
    (0..20_000).find_map(|seed| {
        let limits = Limits {
            fault: Some(fault),
            ..world(seed)
        };
        let (wrong, way) = simulate(&limits, seed, 300).err()?;
        println!(
            "{fault:?}: {wrong:?} after {} steps of seed {seed}",
            way.len()
        );
        Some(wrong)
    })
}

/// That takes two waiters, and two releases of a process that waited twice.
#[test]
fn a_key_given_twice_by_one_batch() {
    let wrong = found_by_lot(Fault::ATakenKeyIsGiven, by_lot);
    assert_eq!(wrong, Some(Wrong::WindowWithoutTheKey));
}

/// That takes a push that comes late, for a lease whose end comes later still.
#[test]
fn an_earlier_release_that_is_forgotten() {
    let wrong = found_by_lot(Fault::EarlierReleaseIsForgotten, by_lot);
    assert_eq!(wrong, Some(Wrong::CooldownCut));
}

#[test]
fn a_key_given_away_that_nobody_looks_after() {
    let waited = behind_stopped(3, 0, false, Some(Fault::NobodyLooksAfterAGivenKey));
    assert!(waited > 20, "{waited} s");
}

#[test]
fn a_gap_whose_end_no_waiter_is_told_of() {
    let waited = behind_a_gap(Some(Fault::NoWaiterIsToldOfAGap));
    assert!(waited > 20, "{waited} s");
}

#[test]
fn a_refused_place_that_is_believed() {
    let waited = refused_a_place(Some(Fault::ARefusedPlaceIsBelieved));
    assert!(waited > 20, "{waited} s");
}

#[test]
fn a_newcomer_that_stands_where_the_clock_says() {
    let first = first_after_the_clock_went_back(Some(Fault::PlacesByTheClock));
    assert_eq!(first, 2);
}

/// That takes one that has given the key away and is gone.
#[test]
fn a_next_in_line_that_is_not_told() {
    let waited = behind_stopped(1, 2, true, Some(Fault::NobodyIsToldOfAGrant));
    assert!(waited > 20, "{waited} s");
}
