//! A task that waits for a lease to be lost.

use std::task::Context;

use super::Engine;
use crate::active::ActiveLease;
use crate::lease::Loss;

/// A watch for the loss of a lease. It ends when it is dropped.
pub(crate) struct LossWatch<'a> {
    engine: &'a Engine,
    lease: &'a ActiveLease,
    waker_id: Option<u32>,
}

impl<'a> LossWatch<'a> {
    pub(crate) fn new(engine: &'a Engine, lease: &'a ActiveLease) -> Self {
        Self {
            engine,
            lease,
            waker_id: None,
        }
    }

    pub(crate) fn poll_lost(&mut self, context: &Context<'_>) -> Option<Loss> {
        self.engine
            .poll_lost(self.lease, &mut self.waker_id, context)
    }
}

impl Drop for LossWatch<'_> {
    fn drop(&mut self) {
        self.lease.forget_waker(self.waker_id);
    }
}
