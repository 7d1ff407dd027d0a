//! Leaders: one process of many does the work, and another takes over when it ends.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;
use std::time::Duration;

use crate::active::{LongHoldObserver, Role};
use crate::api::handle::LockHandle;
use crate::api::manager::LockManager;
use crate::api::request::LockRequest;
use crate::base::error::{Error, ErrorKind};
use crate::base::fence::FencingToken;
use crate::base::key::LockKey;
use crate::base::options::{Reentrancy, Wait};
use crate::base::sync::lock as guarded;
use crate::lease::backoff::pause_before_campaign;

impl LockManager {
    /// Creates a candidate for the leadership named `key`.
    ///
    /// The leadership is the lock on that key. Of all candidates, one at a time leads.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// # async fn next_invoice() -> Option<u64> { None }
    /// use std::time::Duration;
    ///
    /// let billing = locks.leader("billing").ttl(Duration::from_secs(15));
    /// billing
    ///     .run(|lead| async move {
    ///         while let Some(invoice) = next_invoice().await {
    ///             println!("UPDATE … WHERE id = {invoice} AND fence <= {}", lead.fencing_token());
    ///         }
    ///     })
    ///     .await
    /// # }
    /// ```
    pub fn leader(&self, key: impl Into<LockKey>) -> Leader {
        Leader {
            locks: self.clone(),
            key: key.into(),
            ttl: None,
            seat: Arc::default(),
        }
    }
}

/// A candidate for a leadership.
///
/// [`LockManager::leader`] creates it, and [`run`](Self::run) lets it campaign.
#[must_use = "a candidate does nothing until the future of `run` is awaited"]
pub struct Leader {
    locks: LockManager,
    key: LockKey,
    ttl: Option<Duration>,
    seat: Arc<Seat>,
}

/// The handle of the current leadership of this candidate, or of its last one.
type Seat = Mutex<Option<LockHandle>>;

impl Leader {
    /// Sets for how long the leadership outlives its last renewal. Default: that of the manager, 30 s.
    ///
    /// The others wait that long for a leader that crashed. The bounds are those of
    /// [`LockRequest::ttl`](crate::LockRequest::ttl).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Returns a view that says whether this candidate leads, for other tasks of the process.
    #[must_use]
    pub fn view(&self) -> LeaderView {
        LeaderView {
            seat: Arc::clone(&self.seat),
        }
    }

    /// Campaigns, leads, and campaigns again after a loss, until the body has returned.
    ///
    /// The candidate waits for the lock, first come, first served, without polling. When it has the lock, it calls
    /// `body`, whose future is the work of a leader.
    ///
    /// * **The body returns.** The candidate resigns: it releases the lock, the next candidate leads, and this method
    ///   returns the output of the body. To lead for ever, the body does not return. To stand again, create another
    ///   candidate, which has a [view](Self::view) of its own.
    /// * **The leadership is lost.** The body is dropped at its next await, before another candidate can lead, and the
    ///   candidate campaigns again with a new body. The [promises](crate#promises-and-their-limits) of a lock name the
    ///   exceptions.
    /// * **The store does not answer.** The candidate campaigns again.
    /// * **The future is dropped.** The body is dropped first, and then the background releases the lock.
    /// * **The body panics.** The panic ends this method and the candidacy, and the lock is released. Watch the `JoinHandle` of
    ///   the task.
    /// * **The manager drains.** The body is dropped, and this method returns `Unavailable`.
    ///
    /// Before a new campaign the candidate pauses: 100 ms, then twice as long each time, at most 10 s. A leadership that
    /// has lasted for a ttl begins the pauses anew.
    ///
    /// The body runs inside the lock, so a nested `run` with the same key enters it.
    ///
    /// # Errors
    ///
    /// * `Unavailable`: the manager drains ([`is_draining`](LockManager::is_draining)).
    /// * `Busy`: the key has a [record](LockHandle::remember), which other code has left there. It is no leadership's
    ///   key then; [`LockManager::forget`] removes the record.
    /// * `Misconfigured`: the store will never accept this request.
    /// * `Invalid`: the key or the ttl is out of bounds, or the calling code already holds this lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the candidacy, and the leadership too.
    pub async fn run<C, F>(self, mut body: C) -> Result<F::Output, Error>
    where
        C: FnMut(Leadership) -> F,
        F: Future,
    {
        let engine = Arc::clone(self.locks.engine());
        let ttl = self.ttl.unwrap_or(engine.defaults.0);
        let mut campaigns = 0;
        loop {
            let led = Mutex::new(None);
            let campaign = self.request().run_with(|lock| {
                // A leader holds its lock for days, which deserves no warning.
                lock.observe_long_hold(Weak::<NoReport>::new());
                lock.lease.serves_as(Role::Leadership);
                *guarded(&led) = Some(lock.clone());
                *guarded(&self.seat) = Some(lock.clone());
                body(Leadership { lock })
            });
            let Some(ended) = unless_draining(&self.locks, campaign).await else {
                return Err(Error::draining());
            };
            let error = match ended {
                Ok(output) => return Ok(output),
                Err(error) => error,
            };
            if self.locks.is_draining() || !is_passing(&error) {
                return Err(error);
            }
            if let Some(led) = guarded(&led).take() {
                tracing::warn!(%error, "a leadership was lost; its work was dropped");
                if led.held_for() >= ttl {
                    campaigns = 0;
                }
            }
            campaigns += 1;
            let pause = engine
                .timers
                .at(engine.now() + pause_before_campaign(campaigns));
            if unless_draining(&self.locks, pause).await.is_none() {
                return Err(Error::draining());
            }
        }
    }

    fn request(&self) -> LockRequest {
        let request = self.locks.lock(self.key.clone());
        let request = match self.ttl {
            Some(ttl) => request.ttl(ttl),
            None => request,
        };
        request.wait(Wait::Forever).reentrant(Reentrancy::Refuse)
    }
}

/// Receives no report, because each of its references is dead.
struct NoReport;

impl LongHoldObserver for NoReport {
    fn on_long_hold(&self, _: Duration) {}
}

/// Returns whether the cause of the error may be over soon.
pub(super) fn is_passing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Lost | ErrorKind::Unavailable)
}

/// Awaits `future`. `None`: the manager drains, and the future is dropped.
pub(super) async fn unless_draining<F: Future>(
    locks: &LockManager,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut draining = pin!(locks.engine().queue.draining());
    poll_fn(|context| match draining.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(context).map(Some),
    })
    .await
}

/// A leadership, as its body sees it.
///
/// It is a [`LockHandle`]: `fencing_token`, `remaining`, `lost` and the other methods are those of the lock. But
/// `remember` and `ticket` are `Invalid`, because no other candidate could lead while a record stands, and a ticket would
/// make a second leader.
#[derive(Clone)]
pub struct Leadership {
    lock: LockHandle,
}

impl Leadership {
    /// Returns whether this candidate leads at this moment.
    ///
    /// The method reads the lease and the clock, and does no I/O. So after a pause of the process that was longer than
    /// the ttl, the first call returns `false`. It says nothing about work that is under way: only a resource that
    /// checks the [fencing token](FencingToken) refuses the write of a leader that is one no more.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.lock.is_valid()
    }

    /// Returns the handle of the lock, for code that takes one.
    #[must_use]
    pub fn handle(&self) -> LockHandle {
        self.lock.clone()
    }
}

impl Deref for Leadership {
    type Target = LockHandle;

    fn deref(&self) -> &LockHandle {
        &self.lock
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("lock", &self.lock)
            .finish()
    }
}

/// Says whether a candidate leads, for tasks that do not run its body.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
/// # let locks = lock_core::LockManager::in_memory();
/// let billing = locks.leader("billing");
/// let view = billing.view(); // for a handler that shows the state of this process
/// assert!(!view.is_leader());
/// billing.run(|_| async { assert!(view.is_leader()) }).await?;
/// assert!(!view.is_leader());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LeaderView {
    seat: Arc<Seat>,
}

impl LeaderView {
    /// Returns whether the candidate leads at this moment, by the lease and the clock.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.fencing_token().is_some()
    }

    /// Returns the fencing token of the leadership, or `None` if the candidate does not lead.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        let handle = guarded(&self.seat).clone()?;
        handle.is_valid().then(|| handle.fencing_token())
    }
}

impl fmt::Debug for LeaderView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderView")
            .field("fencing_token", &self.fencing_token())
            .finish()
    }
}

impl fmt::Debug for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leader")
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}
