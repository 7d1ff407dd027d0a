//! A held lock: the guard that owns it and the handle that shows it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tracing::{Instrument, Span};

use crate::acks::Acks;
use crate::error::Error;
use crate::fence::FencingToken;
use crate::hold::{Hold, Watch};
use crate::keeper::{Job, Timer};
use crate::lease::{Loss, Phase};
use crate::local::Left;
use crate::manager::Core;
use crate::options::cooldown_millis;
use crate::reentry::{Entry, Level, LockScope, Turn};
use crate::release::{self, discard, release_later};
use crate::store::{Operation, Outcome, Released};

/// A look at a held lock, without owning it: what a body gets, and what may be cloned and sent
/// anywhere. After the lock was released or lost it says so.
#[derive(Clone)]
pub struct LockHandle {
    hold: Arc<Hold>,
    /// Whose turn it is inside the body that has entered the lock; `None`: the owner's handle.
    turn: Option<Turn>,
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

    /// How many servers hold the lock, of how many, by their last word: over several (`redlock://…`)
    /// it says how many of them may still forget it; on one it is 1 of 1. None of them, once it is
    /// lost or released. No I/O.
    #[must_use]
    pub fn acks(&self) -> Acks {
        let acks = self.hold.core.store.acks(self.hold.token);
        if self.is_valid() {
            acks
        } else {
            Acks::new(0, acks.of())
        }
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
        let mut watch = Watch::new(&self.hold);
        poll_fn(|context| match watch.poll_lost(context) {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        })
        .await;
    }

    /// The key, as it was asked for.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.hold.key
    }

    /// Keeps the key taken for `cooldown` after the release, so that the click that comes after a
    /// fast answer is refused too. The longest of several calls counts; a day at most, and the
    /// manager's [`max_ttl`](crate::ManagerBuilder::max_ttl). Unlike the request's `cooldown`, which is for work that succeeded, this one counts however the lock is
    /// given back, a dropped guard included.
    pub fn cooldown(&self, cooldown: Duration) {
        self.hold.set_cooldown(cooldown.min(self.hold.core.max_ttl));
    }

    /// Runs `future` inside this lock: in it, a `#[distributed_lock]` function, a
    /// [`run`](crate::LockRequest::run) or `run_with` that asks the same manager for the same key
    /// enters the lock, instead of waiting for it in vain. What it gets is this very lock, with its
    /// fencing token.
    ///
    /// The bodies of those, and the handlers of the layer, run inside their lock already. This is
    /// for work under a [`LockGuard`], and for tasks: a spawned task is not inside by itself.
    ///
    /// * One body at a time: those that enter from two branches of a `join!`, or from two tasks,
    ///   exclude each other as strangers do, and [`wait`](crate::LockRequest::wait) says for how
    ///   long.
    /// * [`acquire`](crate::LockRequest::acquire) never enters.
    /// * Once the lock is lost, nobody enters (`Lost`). Once it was given back, those inside are an
    ///   ordinary caller. If it is given back while a body that entered from another task still
    ///   runs, that happens when the body has ended.
    ///
    /// # Cancel safety
    ///
    /// As safe as `future` itself.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "macros")] mod example {
    /// # use lock_core::{distributed_lock, Error, LockHandle, LockManager};
    /// #[distributed_lock(key = "account:<id>", ttl = "10s", wait = "1s")]
    /// async fn book(id: u64, cents: i64) -> Result<(), Error> { Ok(()) }
    ///
    /// #[distributed_lock(key = "account:<id>", ttl = "10s", guard = lock)]
    /// async fn settle(id: u64) -> Result<(), Error> {
    ///     book(id, 250).await?; // enters
    ///     let lock = lock.clone();
    ///     let fee = tokio::spawn(async move { lock.scope(book(id, -3)).await }); // so does this
    ///     fee.await.expect("no panic")
    /// }
    /// # #[tokio::main(flavor = "current_thread")] pub async fn main() -> Result<(), Error> {
    /// # let locks = LockManager::in_memory();
    /// # locks.install()?;
    /// # settle(7).await
    /// # } }
    /// # #[cfg(feature = "macros")] fn main() { example::main().unwrap() }
    /// # #[cfg(not(feature = "macros"))] fn main() {}
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> LockScope<F> {
        LockScope::new(future, &self.hold, self.turn.as_ref())
    }

    pub(crate) fn is_of(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.hold.core, core)
    }

    pub(crate) fn timer(&self, patience: Duration) -> Timer {
        let keeper = &self.hold.core.keeper;
        keeper.timer(keeper.clock.now() + patience)
    }

    /// That of a body inside the lock.
    pub(crate) fn inside(entry: &Entry) -> Self {
        Self {
            hold: Arc::clone(&entry.hold),
            turn: Some(Arc::clone(&entry.turn)),
        }
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
            handle: LockHandle { hold, turn: None },
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
        let released = self.give_back(patience).instrument(span.clone()).await;
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
    pub fn release_in_background(self) {
        self.work_is_done();
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
        let cooldown = hold.cooldown();
        let operation = match cooldown {
            Duration::ZERO => Operation::Release(hold.release()),
            cooldown => Operation::Cool(hold.release(), cooldown),
        };
        let mut answer = core.store.execute(operation, core.store.lane());
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
