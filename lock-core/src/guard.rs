//! A held lock: the guard that owns it and the handle that shows it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tracing::{Instrument, Span};

use crate::error::Error;
use crate::fence::FencingToken;
use crate::hold::Hold;
use crate::keeper::Job;
use crate::lease::{Loss, Phase};
use crate::options::cooldown_millis;
use crate::store::{Operation, Outcome, Released};

/// A look at a held lock, without owning it: what a body gets, and what may be cloned and sent
/// anywhere. After the lock was released or lost it says so.
#[derive(Clone)]
pub struct LockHandle {
    hold: Arc<Hold>,
}

impl LockHandle {
    /// The number that a resource can check: see [`FencingToken`].
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.hold
            .fence()
            .expect("a handle is made when the lock is granted, with its fencing token")
    }

    /// How long the lock stays valid if it is never renewed again; zero once it is lost or released.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.hold.remaining()
    }

    /// How long ago the lock was granted, by the manager's clock; also after it was released or lost.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        self.hold.held_for()
    }

    /// Whether the lock is held at this very moment. Reads the clock: after the process was stopped
    /// for longer than the ttl, the first call says `false`.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.hold.is_valid()
    }

    /// Resolves when the lock is lost; never, if it is released first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// # async fn next_page() {}
    /// let guard = locks.lock("import").acquire().await?;
    /// tokio::select! {
    ///     () = next_page() => {}
    ///     () = guard.lost() => return Ok(()), // somebody else imports now
    /// }
    /// guard.release().await
    /// # }
    /// ```
    pub async fn lost(&self) {
        let mut seat = Seated {
            hold: &self.hold,
            seat: None,
        };
        poll_fn(
            |context| match seat.hold.poll_lost(&mut seat.seat, context) {
                Some(_) => Poll::Ready(()),
                None => Poll::Pending,
            },
        )
        .await;
    }

    /// The key, as it was asked for.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.hold.key
    }

    /// Keeps the key taken for `cooldown` after the release, so that the click that comes after a
    /// fast answer is refused too. The longest of several calls counts; a day at most. Unlike the
    /// request's `cooldown`, which is for work that succeeded, this one counts however the lock is
    /// given back, a dropped guard included.
    pub fn cooldown(&self, cooldown: Duration) {
        self.hold.set_cooldown(cooldown);
    }

    /// Whether the lock is lost; the task is woken when it gets lost.
    pub(crate) fn poll_lost(&self, seat: &mut Option<u32>, context: &Context<'_>) -> Option<Loss> {
        self.hold.poll_lost(seat, context)
    }

    pub(crate) fn forget_waker(&self, seat: Option<u32>) {
        self.hold.forget_waker(seat);
    }

    pub(crate) fn loss_error(&self, loss: Loss) -> Error {
        self.hold.loss_error(loss)
    }
}

impl fmt::Debug for LockHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockHandle")
            .field("fencing_token", &self.hold.fence())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

/// A waker's seat that is given back on drop.
struct Seated<'a> {
    hold: &'a Hold,
    seat: Option<u32>,
}

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        self.hold.forget_waker(self.seat);
    }
}

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
            handle: LockHandle { hold },
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

    /// Does `act` inside the span `lock.hold`.
    pub(crate) fn in_span<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.span {
            Some(span) => span.in_scope(act),
            None => act(),
        }
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
        let span = tracing::debug_span!("lock.release", outcome = tracing::field::Empty);
        let result = self.give_back().instrument(span.clone()).await;
        span.record(
            "outcome",
            result.as_ref().map_or_else(Error::code, |()| "released"),
        );
        result
    }

    /// Gives the lock back without waiting: the release is sent, and repeated if need be, in the
    /// background. Unlike a drop this says that the work is done, so the request's `cooldown` counts.
    pub fn release_in_background(self) {
        self.work_is_done();
    }

    async fn give_back(mut self) -> Result<(), Error> {
        let hold = Arc::clone(&self.handle.hold);
        self.work_is_done();
        match self.end() {
            Phase::Held => {}
            Phase::Lost(loss) => {
                discard(&hold, loss);
                return Err(hold.loss_error(loss));
            }
            Phase::Asking | Phase::Closed => return Ok(()),
        }
        let mut returning = Returning { hold: Some(&hold) };
        let core = &hold.core;
        let cooldown = hold.cooldown();
        let operation = match cooldown {
            Duration::ZERO => Operation::Release(hold.release()),
            cooldown => Operation::Cool(hold.release(), cooldown),
        };
        let mut answer = core.store.execute(operation, core.store.lane());
        let mut timer = pin!(
            core.keeper
                .timer(core.keeper.clock.now() + core.operation_timeout)
        );
        let outcome = poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => timer.as_mut().poll(context).map(|()| None),
        })
        .await;
        match outcome {
            Some(Outcome::Released(released)) => {
                returning.hold = None;
                core.local.leave(&hold, false);
                if hold.has_late_twin() {
                    core.keeper.submit(Job::late_twin(&hold));
                }
                if released == Released::Yes { Ok(()) } else { Err(hold.loss_error(Loss::NotOurs)) }
            }
            Some(Outcome::Failed(failure)) if failure.is_final() => Err(failure.error.with_key(&hold.key)),
            _ => Err(Error::unavailable(
                "the release was not confirmed; it goes on in the background, and the key ends by its ttl",
            )
            .with_key(&hold.key)),
        }
    }

    /// Ends the lease on this side; what the store has to hear is the caller's.
    fn end(&mut self) -> Phase {
        let hold = &self.handle.hold;
        self.ended = true;
        let phase = hold.close();
        if let Some(span) = &self.span {
            span.record("held_ms", hold.held_for().as_secs_f64() * 1e3);
            span.record(
                "outcome",
                if let Phase::Lost(_) = phase {
                    "lost"
                } else {
                    "released"
                },
            );
        }
        phase
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

fn release_later(hold: &Hold) {
    hold.core.keeper.submit(Job::release(hold));
    // Stepping over a release is right only if nothing is to stay behind it.
    hold.core.local.leave(hold, hold.cooldown().is_zero());
}

/// What is to be done about a lost lease in the store: if it may still be there, it goes.
fn discard(hold: &Hold, loss: Loss) {
    let core = &hold.core;
    core.local.leave(hold, false);
    if loss != Loss::NotOurs {
        // The tenure is over: whoever comes next need not wait for its key to run out.
        core.local.note_unreleased(hold);
        core.keeper.submit(Job::discard(hold));
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
                Phase::Held => release_later(&self.handle.hold),
                Phase::Lost(loss) => discard(&self.handle.hold, loss),
                Phase::Asking | Phase::Closed => {}
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
