//! The search finds each seeded fault, in a small world that shows it.

use super::fault::ShareFault;
use super::steps::ShareStep;
use super::world::{READ, ShareLimits, ShareWorld, ShareWrong, Wanted};
use super::worlds::{DOWNGRADE, LATE_QUESTION, ONE, PLAIN, TWO, WRITE};
use crate::model::explore::explore;

/// Searches until a check fails.
fn found(fault: ShareFault, world: ShareLimits) -> ShareWrong {
    let limits = ShareLimits {
        fault: Some(fault),
        ..world
    };
    let found = explore::<ShareWorld>(&limits, 0);
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
    wrong
}

macro_rules! found {
    ($($name:ident: $fault:ident, $wrong:ident, $world:expr;)+) => {$(
        #[test]
        fn $name() {
            assert_eq!(found(ShareFault::$fault, $world), ShareWrong::$wrong);
        }
    )+};
}

const SHORT_AND_LONG: ShareLimits = ShareLimits {
    clients: &[(READ, 4), (READ, 2), (WRITE, 2)],
    ..PLAIN
};
found! {
    a_shorter_share_that_cuts_the_key: EndOfTheKeyIsCut, OwnerOutlivesItsShare, SHORT_AND_LONG;
    a_renewal_that_forgets_the_key: RenewalForgetsTheKey, OwnerOutlivesItsShare,
        ShareLimits { renews: true, ..PLAIN };
    a_first_release_that_frees_the_key: FirstReleaseFrees, OwnerWithoutKey, PLAIN;
    a_first_share_that_is_forgotten: FirstShareForgotten, OwnerWithoutKey, PLAIN;
    a_dead_waiter_that_is_undone_by_a_deletion: UndoneByDeletion, OwnerWithoutKey,
        ShareLimits { ticks: 2, crashes: 1, ..PLAIN };
    newcomers_that_starve_a_writer: NewcomersFirst, NewcomerBeforeWaiters, PLAIN;
    a_writer_that_gives_up_and_tells_no_reader: LeavingAdmitsNone, RoomIsLeft,
        ShareLimits { gives_up: true, ..PLAIN };
    the_limit_of_the_releaser: LimitOfTheReleaser, TooManyAdmitted,
        ShareLimits { clients: &[(Wanted::Share(3), 3), (TWO, 3), (ONE, 3)], ..PLAIN };
    a_reader_that_stands_beside_a_permit: ReadersBesidePermits, ReaderBesidePermit,
        ShareLimits { clients: &[(READ, 3), (TWO, 3)], ticks: 0, ..PLAIN };
    a_permit_that_has_ended_and_is_counted: EndedSharesCount, RoomIsLeft,
        ShareLimits { clients: &[(TWO, 2), (TWO, 4), (TWO, 3)], ..PLAIN };
    a_mark_that_no_reader_raises: MarkNotRaised, ExclusiveFenceNotHigher, PLAIN;
    a_given_share_that_never_asks: GivenShareNeverAsks, RoomIsLeft, ShareLimits { ticks: 0, ..PLAIN };
    an_end_of_a_writer_that_lets_in_one_reader: EndAdmitsOne, RoomIsLeft, ShareLimits { ticks: 0, ..PLAIN };
    a_downgrade_that_never_asks: DowngradeNeverAsks, RoomIsLeft, ShareLimits { ticks: 0, ..DOWNGRADE };
    a_downgrade_that_keeps_the_token_of_before: TokenOfBeforeIsKept, OwnerWithoutKey, ShareLimits { ticks: 0, ..DOWNGRADE };
    a_swap_that_is_answered_late_and_counts: LateSwapCounts, ShareFenceNotHigher, LATE_QUESTION;
    a_waiter_that_is_let_in_beside_itself: EnteringCutsItsOwnShare, OwnerOutlivesItsShare,
        ShareLimits { clients: &[(TWO, 3), (WRITE, 1)], ticks: 1, doubles: 1, renews: true, ..PLAIN };
    a_repeated_question_that_admits_none: RepeatedQuestionAdmitsNone, RoomIsLeft, PLAIN;
}

/// The path is too long for a search: two readers, a deletion, a writer, two more readers, and a renewal.
fn renewed_after_a_deletion(fault: Option<ShareFault>) -> Option<ShareWrong> {
    let limits = ShareLimits {
        clients: &[(READ, 9), (READ, 9), (WRITE, 3), (READ, 9), (READ, 9)],
        deletions: 1,
        renews: true,
        fault,
        ..PLAIN
    };
    let steps = [
        ShareStep::Begin(0),
        ShareStep::Begin(1),
        ShareStep::Delete,
        ShareStep::Begin(2),
        ShareStep::Release(2),
        ShareStep::Begin(3),
        ShareStep::Begin(4),
    ];
    let mut world = ShareWorld::new(&limits);
    for step in steps {
        let after = world.after(step, &limits).expect("nothing wrong");
        world = after.settled(&limits).expect("nothing wrong");
    }
    let renews = world.after(ShareStep::Renew(0), &limits);
    let renewed = renews.and_then(|world| world.settled(&limits));
    renewed.err()
}

#[test]
fn a_set_that_outlives_its_key() {
    assert_eq!(renewed_after_a_deletion(None), None);
    let fault = Some(ShareFault::SetOutlivesItsKey);
    let wrong = renewed_after_a_deletion(fault);
    assert_eq!(wrong, Some(ShareWrong::OvertakenShareRenewed));
}
