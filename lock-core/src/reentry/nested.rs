//! The bodies that have entered a lease, as the lease counts them.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::lease::Terms;

/// The right to be inside a level: one permit.
pub(crate) type Turn = Arc<Semaphore>;

pub(super) fn new_turn() -> Turn {
    Arc::new(Semaphore::new(1))
}

pub(crate) struct Nested {
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
