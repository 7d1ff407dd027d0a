//! Values that keep a lease for work which outlives its owner, such as a blocking call on another thread.
//!
//! The owner and the bodies of a lease are futures, and end where they are dropped. Work on another thread goes on. So
//! the lease counts such work, and the end of its owner is put off until the count is zero.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::bodies::Bodies;
use super::{ActiveLease, LeaseState};
use crate::base::sync::{lock, wake_all};
use crate::lease::Phase;

impl ActiveLease {
    /// Counts one more value that keeps this lease. `false`: the lease has ended, and the value has no effect.
    #[must_use]
    pub(crate) fn keep(&self) -> bool {
        let mut state = lock(&self.state);
        // A lost lease is kept too, so that its key is not given back under the work before it runs out.
        if matches!(state.lease.phase(), Phase::Asking | Phase::Closed) {
            return false;
        }
        let renewed = state.lease.renews();
        let bodies = state.bodies.get_or_insert_with(|| Bodies::new(renewed));
        bodies.kept += 1;
        true
    }

    /// Counts one such value less. `true`: it was the last one inside and the owner had ended before it, so the caller
    /// has to end the lease.
    #[must_use]
    pub(crate) fn let_go(&self) -> bool {
        let mut state = lock(&self.state);
        let LeaseState {
            lease,
            bodies,
            waiting,
            ..
        } = &mut *state;
        let Some(bodies) = bodies else {
            return false;
        };
        bodies.kept -= 1;
        if bodies.kept > 0 {
            return false;
        }
        let stops = bodies.is_unrenewed();
        if stops {
            lease.stop_renewing();
        }
        let deserted = bodies.is_deserted();
        let waiting = waiting.take();
        drop(state);
        if stops {
            self.stop_renewing_followers();
        }
        wake_all(waiting);
        deserted
    }

    pub(crate) fn is_kept(&self) -> bool {
        let state = lock(&self.state);
        state.bodies.as_ref().is_some_and(|bodies| bodies.kept > 0)
    }

    /// Resolves when no value keeps the lease.
    pub(crate) fn unkept(&self) -> Unkept<'_> {
        Unkept {
            lease: self,
            waker_id: None,
        }
    }
}

/// The future of [`ActiveLease::unkept`].
pub(crate) struct Unkept<'a> {
    lease: &'a ActiveLease,
    waker_id: Option<u32>,
}

impl Future for Unkept<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let lease = self.lease;
        // Registered first, so that no end falls between the two.
        lease.wake_on_change(&mut self.waker_id, context.waker());
        match lease.is_kept() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }
}

impl Drop for Unkept<'_> {
    fn drop(&mut self) {
        self.lease.forget_waker(self.waker_id);
    }
}
