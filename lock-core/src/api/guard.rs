//! A held lock: the guard that owns it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tracing::{Instrument, Span};

use crate::active::Hold;
use crate::api::handle::LockHandle;
use crate::base::error::Error;
use crate::base::options::cooldown_millis;
use crate::engine::reentry::Level;
use crate::engine::release::{self, discard, release_later, release_on_the_way};
use crate::keeper::Job;
use crate::lease::{Loss, Phase};
use crate::queue::Left;
use crate::store::{Outcome, Released};

/// A held lock. It renews itself until it is released, dropped or lost.
///
/// Dropping a guard never blocks, does no I/O and cannot panic, in a runtime or out of one: the
/// release is sent in the background. [`release`](LockGuard::release) waits for it.
#[must_use = "the lock is released as soon as the guard is dropped; bind it to a name, not to `_`"]
pub struct LockGuard {
    handle: LockHandle,
    /// For after the work was done: set by the request, applied by the releases, not by a drop.
    cooldown_millis: u32,
    /// Boxed, where somebody listens: a process may hold very many guards.
    span: Option<Box<Span>>,
    ended: bool,
}

impl LockGuard {
    pub(crate) fn new(hold: Arc<Hold>, cooldown: Duration) -> Self {
        let span = tracing::debug_span!(
            "lock.hold",
            held_ms = tracing::field::Empty,
            outcome = tracing::field::Empty
        );
        hold.core.keeper.guard_made();
        Self {
            handle: LockHandle::of_owner(hold),
            cooldown_millis: cooldown_millis(cooldown),
            span: (!span.is_disabled()).then(|| Box::new(span)),
            ended: false,
        }
    }

    /// A handle that may outlive the guard.
    #[must_use]
    pub fn handle(&self) -> LockHandle {
        self.handle.clone()
    }

    /// What a body under this lock is inside of.
    pub(crate) fn level(&self) -> Arc<Level> {
        Level::open(&self.handle.hold, None)
    }

    /// The work came to nothing: the cooldown of the request does not count.
    pub(crate) fn forget_cooldown(&mut self) {
        self.cooldown_millis = 0;
    }

    /// Does `act` inside the span `lock.hold`.
    pub(crate) fn enter_span(&self) -> Option<tracing::span::Entered<'_>> {
        self.span.as_ref().map(|span| span.enter())
    }

    /// The work is done: the cooldown of the request counts.
    fn work_is_done(&self) {
        let cooldown = Duration::from_millis(u64::from(self.cooldown_millis));
        self.handle.hold.set_cooldown(cooldown);
    }

    /// Gives the lock back and waits for the store's answer.
    ///
    /// The work is done when this is called: an error is worth a log line, never a failed request.
    ///
    /// # Errors
    ///
    /// * `Lost`: the lock was lost before this call; another owner may have worked at the same time.
    /// * `Unavailable`: the store did not answer; the release goes on in the background, and the
    ///   key ends by its ttl at the latest.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        let hold = Arc::clone(&self.handle.hold);
        let released = self.release_within(hold.core.operation_timeout).await;
        released.unwrap_or_else(|| {
            Err(Error::unavailable(
                "the release was not confirmed; it goes on in the background, and the key ends by its ttl",
            )
            .with_key(&hold.key))
        })
    }

    /// As [`release`](Self::release). `None`: the store has not answered by then, and the release goes
    /// on in the background.
    pub(crate) async fn release_within(self, patience: Duration) -> Option<Result<(), Error>> {
        let span = tracing::debug_span!("lock.release", outcome = tracing::field::Empty);
        if span.is_disabled() {
            return self.give_back(patience).await;
        }
        // Boxed: where nobody listens it costs nothing.
        let released = Box::pin(self.give_back(patience).instrument(span.clone())).await;
        let outcome = match &released {
            Some(Ok(())) => "released",
            Some(Err(error)) => error.code(),
            None => "unconfirmed",
        };
        span.record("outcome", outcome);
        released
    }

    /// Gives the lock back without waiting: the release is sent, and repeated if need be, in the
    /// background. Unlike a drop this says that the work is done, so the request's `cooldown` counts.
    pub fn release_in_background(mut self) {
        self.work_is_done();
        match self.end() {
            (Phase::Held, hold) => release_on_the_way(&hold),
            (Phase::Lost(loss), hold) => discard(&hold, loss),
            (Phase::Asking | Phase::Closed, _) => {}
        }
    }

    async fn give_back(mut self, patience: Duration) -> Option<Result<(), Error>> {
        self.work_is_done();
        let (phase, hold) = self.end();
        match phase {
            Phase::Held => {}
            Phase::Lost(loss) => {
                discard(&hold, loss);
                return Some(Err(hold.loss_error(loss)));
            }
            Phase::Asking | Phase::Closed => return Some(Ok(())),
        }
        let mut returning = Returning { hold: Some(&hold) };
        let core = &hold.core;
        let mut answer = core
            .store
            .execute(hold.ending().of(hold.release()), core.store.lane());
        let mut timer = pin!(self.handle.timer(patience));
        let outcome = poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => timer.as_mut().poll(context).map(|()| None),
        })
        .await;
        match outcome {
            Some(Outcome::Released(released)) => {
                returning.hold = None;
                core.local.leave(&hold, Left::Nothing);
                if hold.has_late_twin() {
                    core.keeper.submit(Job::late_twin(&hold));
                }
                Some(if released == Released::Yes {
                    Ok(())
                } else {
                    Err(hold.loss_error(Loss::NotOurs))
                })
            }
            Some(Outcome::Failed(failure)) if failure.is_final() => {
                Some(Err(failure.error.with_key(&hold.key)))
            }
            // Not known to be done: the background sees to it.
            _ => None,
        }
    }

    /// Ends the tenure on this side; what the store has to hear is the caller's, and of which lease.
    fn end(&mut self) -> (Phase, Arc<Hold>) {
        self.ended = true;
        let (phase, hold) = release::end(&self.handle.hold);
        if let Some(span) = &self.span {
            let held_for = self.handle.hold.held_for();
            span.record("held_ms", held_for.as_secs_f64() * 1e3);
            span.record(
                "outcome",
                if let Phase::Lost(_) = phase {
                    "lost"
                } else {
                    "released"
                },
            );
        }
        (phase, hold)
    }
}

/// A release under way: dropped before the answer, it goes on in the background.
struct Returning<'a> {
    hold: Option<&'a Hold>,
}

impl Drop for Returning<'_> {
    fn drop(&mut self) {
        if let Some(hold) = self.hold {
            release_later(hold);
        }
    }
}

impl Deref for LockGuard {
    type Target = LockHandle;

    fn deref(&self) -> &LockHandle {
        &self.handle
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        let core = Arc::clone(&self.handle.hold.core);
        if !self.ended {
            match self.end() {
                (Phase::Held, hold) => release_later(&hold),
                (Phase::Lost(loss), hold) => discard(&hold, loss),
                (Phase::Asking | Phase::Closed, _) => {}
            }
        }
        // Only now: an awaited release that is dropped has become a job by then, and one that was
        // answered is done. Whoever drains waits for either.
        core.keeper.guard_ended();
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("handle", &self.handle)
            .finish()
    }
}
