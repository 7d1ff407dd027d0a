//! Giving a lease back without waiting for the store.

use std::sync::Arc;

use crate::hold::Hold;
use crate::keeper::Job;
use crate::lease::{Loss, Phase};
use crate::local::Local;

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
    hold.core.keeper.submit(Job::release(hold));
    // Stepping over a release is right only if nothing is to stay behind it.
    hold.core.local.leave(hold, hold.cooldown().is_zero());
}

/// What is to be done about a lost lease in the store: if it may still be there, it goes.
pub(crate) fn discard(hold: &Hold, loss: Loss) {
    let core = &hold.core;
    core.local.leave(hold, false);
    if loss != Loss::NotOurs {
        // The tenure is over: whoever comes next need not wait for its key to run out.
        core.local.note_unreleased(hold);
        core.keeper.submit(Job::discard(hold));
    }
}
