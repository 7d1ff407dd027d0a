//! The bodies that have entered a lease, as the lease counts them.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::{ActiveLease, LeaseState};
use crate::base::sync::lock;
use crate::lease::{LeaseOptions, Phase};

impl ActiveLease {
    /// Returns the turn of the bodies that enter this lease directly.
    pub(crate) fn turn(&self) -> Turn {
        Arc::clone(&lock(&self.state).bodies().turn)
    }

    /// Counts one more body under this lease if the lease is held. Returns the phase that was noticed last, and
    /// `Closed` if the owner has ended before the bodies. The engine has to arm the lease again.
    pub(crate) fn enter(&self, options: LeaseOptions) -> Phase {
        let now = self.now();
        let mut state = lock(&self.state);
        let phase = state.lease.phase();
        if phase != Phase::Held {
            return phase;
        }
        if !state.bodies().enter(options) {
            return Phase::Closed;
        }
        state.lease.serve(options, now);
        drop(state);
        for other in self.followers() {
            lock(&other.state).lease.serve(options, now);
        }
        phase
    }

    /// Counts one body less. `true`: it was the last one and the owner had ended before it, so the caller has
    /// to end the lease.
    #[must_use]
    pub(crate) fn leave(&self, options: LeaseOptions) -> bool {
        self.count_less(|bodies| bodies.leave(options))
    }

    /// Counts a body or kept work less. The result is that of [`leave`](Self::leave).
    #[must_use]
    pub(super) fn count_less(&self, leaves: impl FnOnce(&mut Bodies)) -> bool {
        let mut state = lock(&self.state);
        let LeaseState { lease, bodies, .. } = &mut *state;
        let Some(bodies) = bodies else {
            return false;
        };
        leaves(bodies);
        let stops = bodies.is_unrenewed();
        if stops {
            lease.stop_renewing();
        }
        let deserted = bodies.is_deserted();
        drop(state);
        for other in self.followers().iter().filter(|_| stops) {
            lock(&other.state).lease.stop_renewing();
        }
        deserted
    }
}

/// The right to be inside a level, as one permit.
pub(crate) type Turn = Arc<Semaphore>;

pub(crate) fn new_turn() -> Turn {
    Arc::new(Semaphore::new(1))
}

pub(super) struct Bodies {
    /// The turn of the bodies that enter the lease directly, and not inside another body.
    pub(crate) turn: Turn,
    open: usize,
    /// The number of values that keep the lease for work elsewhere. The work may go on after its owner and bodies.
    pub(super) kept: usize,
    /// The number of bodies that want the lease renewed, and one more if its owner does.
    renewing: usize,
    /// `true` once the owner has ended. The lease then admits no further body, except for work that keeps it.
    abandoned: bool,
}

impl Bodies {
    pub(crate) fn new(owner_renews: bool) -> Box<Self> {
        Box::new(Self {
            turn: new_turn(),
            open: 0,
            kept: 0,
            renewing: usize::from(owner_renews),
            abandoned: false,
        })
    }

    /// `false`: the owner has ended, and no body enters any more.
    #[must_use]
    pub(crate) fn enter(&mut self, options: LeaseOptions) -> bool {
        if self.abandoned && self.kept == 0 {
            return false;
        }
        self.open += 1;
        self.renewing += usize::from(options.renews());
        true
    }

    pub(crate) fn leave(&mut self, options: LeaseOptions) {
        self.open -= 1;
        self.renewing -= usize::from(options.renews());
    }

    /// `true`: none of those who are left wants the lease renewed.
    pub(super) fn is_unrenewed(&self) -> bool {
        self.renewing == 0 && self.kept == 0
    }

    /// Notes the end of the owner. `true`: bodies or kept work are still inside, and the last of them ends the lease.
    #[must_use]
    pub(crate) fn abandon(&mut self) -> bool {
        self.abandoned = self.is_open();
        self.abandoned
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open > 0 || self.kept > 0
    }

    /// Returns `true` if the owner has ended, the last body has left and no work keeps the lease.
    pub(crate) fn is_deserted(&self) -> bool {
        self.abandoned && !self.is_open()
    }
}
