//! Bodies that enter a lease from within.

use std::sync::Arc;

use super::{Hold, State};
use crate::lease::{Phase, Terms};
use crate::reentry::{Nested, Turn};
use crate::sync::lock;

impl Hold {
    /// Whose turn it is among those that enter this lease directly.
    pub(crate) fn turn(&self) -> Turn {
        let mut state = lock(&self.state);
        let renewed = state.lease.renews();
        Arc::clone(
            &state
                .nested
                .get_or_insert_with(|| Nested::new(renewed))
                .turn,
        )
    }

    /// One more body goes under this lease, if it is held. Answers the phase; `Closed` also if only
    /// bodies that outlive its owner are still under it.
    pub(crate) fn enter(self: &Arc<Self>, terms: Terms) -> Phase {
        // Tells whom it concerns, if the lease has run out.
        self.phase();
        let now = self.now();
        let mut state = lock(&self.state);
        let phase = state.lease.phase();
        if phase != Phase::Held {
            return phase;
        }
        let renewed = state.lease.renews();
        let nested = state.nested.get_or_insert_with(|| Nested::new(renewed));
        if !nested.enter(terms) {
            return Phase::Closed;
        }
        state.lease.serve(terms, now);
        drop(state);
        self.core.keeper.rearm(self);
        phase
    }

    /// A body has left. `true`: it was the last one, and the owner had ended before it: the lease is
    /// the caller's to end.
    #[must_use]
    pub(crate) fn leave(&self, terms: Terms) -> bool {
        let mut state = lock(&self.state);
        let State { lease, nested, .. } = &mut *state;
        let Some(nested) = nested else {
            return false;
        };
        if nested.leave(terms) {
            lease.stop_renewing();
        }
        nested.is_deserted()
    }
}
