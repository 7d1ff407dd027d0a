//! The bodies that have entered a lease, as the lease counts them.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::{ActiveLease, State};
use crate::base::sync::lock;
use crate::lease::{LeaseOptions, Phase};

impl ActiveLease {
    /// Whose turn it is among those that enter this lease directly.
    pub(crate) fn turn(&self) -> Turn {
        let mut state = lock(&self.state);
        let renewed = state.lease.renews();
        Arc::clone(
            &state
                .bodies
                .get_or_insert_with(|| Bodies::new(renewed))
                .turn,
        )
    }

    /// One more body goes under this lease, if it is held. Answers the phase that was last noticed; `Closed`
    /// also if only bodies that outlive its owner are still under it. The engine has to arm it again.
    pub(crate) fn enter(&self, options: LeaseOptions) -> Phase {
        let now = self.now();
        let mut state = lock(&self.state);
        let phase = state.lease.phase();
        if phase != Phase::Held {
            return phase;
        }
        let renewed = state.lease.renews();
        let bodies = state.bodies.get_or_insert_with(|| Bodies::new(renewed));
        if !bodies.enter(options) {
            return Phase::Closed;
        }
        state.lease.serve(options, now);
        phase
    }

    /// A body has left. `true`: it was the last one, and the owner had ended before it: the lease is
    /// the caller's to end.
    #[must_use]
    pub(crate) fn leave(&self, options: LeaseOptions) -> bool {
        let mut state = lock(&self.state);
        let State { lease, bodies, .. } = &mut *state;
        let Some(bodies) = bodies else {
            return false;
        };
        if bodies.leave(options) {
            lease.stop_renewing();
        }
        bodies.is_deserted()
    }
}

/// The right to be inside a level: one permit.
pub(crate) type Turn = Arc<Semaphore>;

pub(crate) fn new_turn() -> Turn {
    Arc::new(Semaphore::new(1))
}

pub(super) struct Bodies {
    /// Of those that enter the lease directly, not inside one that has entered it before.
    pub(crate) turn: Turn,
    open: usize,
    /// How many of them want it renewed; one more, if its owner does.
    renewing: usize,
    /// The owner has ended. What is still inside is the last.
    abandoned: bool,
}

impl Bodies {
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
    pub(crate) fn enter(&mut self, options: LeaseOptions) -> bool {
        if self.abandoned {
            return false;
        }
        self.open += 1;
        self.renewing += usize::from(options.renews());
        true
    }

    /// `true`: nobody who is left wants the lease renewed.
    #[must_use]
    pub(crate) fn leave(&mut self, options: LeaseOptions) -> bool {
        self.open -= 1;
        self.renewing -= usize::from(options.renews());
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
