//! Giving a lease back without waiting for the store.

use std::sync::Arc;

use crate::hold::Hold;
use crate::keeper::Job;
use crate::lease::{Loss, Phase};

/// Ends the lease on this side, and sees to it that the store hears of it.
pub(crate) fn in_background(hold: &Arc<Hold>) {
    match hold.close() {
        Phase::Held => release_later(hold),
        Phase::Lost(loss) => discard(hold, loss),
        Phase::Asking | Phase::Closed => {}
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
