//! The bodies that have entered a lease, as the lease counts them.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::{Hold, State};
use crate::base::sync::lock;
use crate::lease::{Phase, Terms};

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

/// The right to be inside a level: one permit.
pub(crate) type Turn = Arc<Semaphore>;

pub(crate) fn new_turn() -> Turn {
    Arc::new(Semaphore::new(1))
}

pub(super) struct Nested {
    /// Of those that enter the lease directly, not inside one that has entered it before.
    pub(crate) turn: Turn,
    open: usize,
    /// How many of them want it renewed; one more, if its owner does.
    renewing: usize,
    /// The owner has ended. What is still inside is the last.
    abandoned: bool,
}

impl Nested {
    pub(crate) fn new(owner_renews: bool) -> Box<Self> {
        Box::new(Self {
            turn: new_turn(),
            open: 0,
            renewing: usize::from(owner_renews),
            abandoned: false,
        })
    }

    /// `false`: nobody enters any more.
    #[must_use]
    pub(crate) fn enter(&mut self, terms: Terms) -> bool {
        if self.abandoned {
            return false;
        }
        self.open += 1;
        self.renewing += usize::from(terms.renews());
        true
    }

    /// `true`: nobody who is left wants the lease renewed.
    #[must_use]
    pub(crate) fn leave(&mut self, terms: Terms) -> bool {
        self.open -= 1;
        self.renewing -= usize::from(terms.renews());
        self.renewing == 0
    }

    /// The owner ends. `true`: bodies are still inside, and the last of them ends the lease.
    #[must_use]
    pub(crate) fn abandon(&mut self) -> bool {
        self.abandoned = self.open > 0;
        self.abandoned
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Whether the last body of a lease without its owner has left.
    pub(crate) fn is_deserted(&self) -> bool {
        self.abandoned && self.open == 0
    }
}
