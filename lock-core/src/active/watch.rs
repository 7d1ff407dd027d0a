//! A task that waits for a lease to be lost.

use std::task::Context;

use super::Hold;
use crate::lease::Loss;

/// A look-out for the loss of a lease, given up on drop.
pub(crate) struct Watch<'a> {
    hold: &'a Hold,
    seat: Option<u32>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(hold: &'a Hold) -> Self {
        Self { hold, seat: None }
    }

    pub(crate) fn poll_lost(&mut self, context: &Context<'_>) -> Option<Loss> {
        self.hold.poll_lost(&mut self.seat, context)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.hold.forget_waker(self.seat);
    }
}
