//! Giving a lease back without waiting for the store.

use std::sync::Arc;

use crate::active::Hold;
use crate::keeper::{Job, Start};
use crate::lease::{Loss, Phase};
use crate::queue::{Left, Local};

/// Ends a tenure: the lease is passed on to another task of this process, or ended on this side.
/// Answers the phase it was in, `Closed` if there is nothing to tell the store, and the lease that the
/// store is to be told of.
pub(crate) fn end(hold: &Arc<Hold>) -> (Phase, Arc<Hold>) {
    match Local::pass(hold) {
        Some(kept) => (kept.close(), kept),
        None => (Phase::Closed, Arc::clone(hold)),
    }
}

/// Ends a tenure, and sees to it that the store hears of it if it has to.
pub(crate) fn in_background(hold: &Arc<Hold>) {
    match end(hold) {
        (Phase::Held, hold) => release_later(&hold),
        (Phase::Lost(loss), hold) => discard(&hold, loss),
        (Phase::Asking | Phase::Closed, _) => {}
    }
}

/// The lease was held to its end.
pub(crate) fn release_later(hold: &Hold) {
    let left = match hold.cooldown().is_zero() {
        true => Left::Steppable,
        false => Left::Known,
    };
    hold.core.local.leave(hold, left);
    hold.core.keeper.submit(Job::release(hold));
}

/// The lease was held to its end, and its runtime goes on.
pub(crate) fn release_on_the_way(hold: &Hold) {
    let core = &hold.core;
    let lane = core.store.ordered_lane();
    let Some((lane, busy)) = lane.filter(|_| !hold.has_late_twin()) else {
        return release_later(hold);
    };
    let errand = core.keeper.entrust(Job::release(hold));
    if hold.cooldown().is_zero() {
        core.local.leave_on_the_way(hold, &errand);
    } else {
        core.local.leave(hold, Left::Known);
    }
    // Among many that go together the release and whatever comes next do too.
    errand.go(lane, if busy { Start::Now } else { Start::Soon });
}

/// What is to be done about a lost lease in the store: if it may still be there, it goes, and a key that is free
/// goes to the first waiter.
pub(crate) fn discard(hold: &Hold, loss: Loss) {
    let core = &hold.core;
    core.local.leave(
        hold,
        match loss {
            Loss::NotOurs => Left::Nothing,
            // The tenure is over: the next owner need not wait for its key to run out.
            _ => Left::Steppable,
        },
    );
    core.keeper.submit(Job::discard(hold));
}
