//! What is asked for, and the verbs that ask.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::api::acquiring::{Acquire, Acquiring, TryAcquire};
use crate::api::body::Body;
use crate::api::handle::LockHandle;
use crate::api::installed::AsLockManager;
use crate::api::manager::LockManager;
use crate::api::ownership::{enter, take_guard};
use crate::api::run::Run;
use crate::base::error::Error;
use crate::base::key::LockKey;
use crate::base::options::{
    Interop, OnLost, Reentrancy, ReleaseMode, Renew, RequestDurations, Wait,
};
use crate::engine::Engine;
use crate::engine::spec::LockSpec;
use crate::lease::LeaseOptions;

/// A lock that is about to be asked for: made by [`LockManager::lock`], shaped by its builder
/// methods, used up by one of the verbs [`acquire`](Self::acquire),
/// [`try_acquire`](Self::try_acquire), [`run`](Self::run) and [`run_with`](Self::run_with).
///
/// It owns its parts, so `tokio::spawn(locks.lock("k").acquire())` compiles. What is wrong with it
/// (a key, a ttl) is reported by the verb.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
/// # let locks = lock_core::LockManager::in_memory();
/// use std::time::Duration;
///
/// let order = locks
///     .lock("order:42")
///     .ttl(Duration::from_secs(10))
///     .wait(Duration::from_secs(2))
///     .run(async { "placed" })
///     .await?;
/// assert_eq!(order, "placed");
/// # Ok(()) }
/// ```
#[must_use = "a request does nothing until one of its verbs is awaited: `acquire`, `try_acquire`, `run`, `run_with`"]
pub struct LockRequest {
    engine: Result<Arc<Engine>, Error>,
    key: LockKey,
    ttl: Duration,
    wait: Wait,
    renew: Renew,
    max_hold: Option<Duration>,
    cooldown: Duration,
    on_lost: OnLost,
    release: ReleaseMode,
    reentrancy: Reentrancy,
    interop: Interop,
    acquire_timeout: Option<Duration>,
}

impl LockRequest {
    /// The attribute's request, of its `manager = …`. The compiler names this function where that is no manager.
    #[doc(hidden)]
    pub fn by<M: AsLockManager + ?Sized>(manager: &M, key: LockKey) -> Self {
        manager.as_lock_manager().lock(key)
    }

    pub(crate) fn new(manager: Result<&LockManager, Error>, key: LockKey) -> Self {
        let engine = manager.map(|manager| Arc::clone(manager.engine()));
        let (ttl, wait) = engine
            .as_ref()
            .map_or((Duration::from_secs(30), Wait::None), |engine| {
                engine.defaults
            });
        Self {
            engine,
            key,
            ttl,
            wait,
            renew: Renew::default(),
            max_hold: None,
            cooldown: Duration::ZERO,
            on_lost: OnLost::default(),
            release: ReleaseMode::default(),
            reentrancy: Reentrancy::default(),
            interop: Interop::default(),
            acquire_timeout: None,
        }
    }

    /// How long the lock outlives its last renewal: what an owner that crashed costs the others.
    /// From 10 ms to 24 h in whole milliseconds, rounded up; at most the manager's
    /// [`max_ttl`](crate::ManagerBuilder::max_ttl). Default: 30 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long to wait while another owner holds the key. Default: not at all.
    ///
    /// Each question to the store gets its [`acquire_timeout`](Self::acquire_timeout), the first and the
    /// last one too: a wait for a store that does not answer may be longer by that much.
    ///
    /// A wait for a store that does not answer may also be shorter: it ends with `Unavailable` when
    /// questions have failed for one second, counted from the end of the first that failed. Where each
    /// runs into its `acquire_timeout`, that is up to one second and two timeouts after the first was
    /// sent (two seconds by default); where connections are refused, one second. An answer in between
    /// starts the count anew.
    pub fn wait(mut self, wait: impl Into<Wait>) -> Self {
        self.wait = wait.into();
        self
    }

    /// Whether the lease is extended while the lock is held. Default: it is.
    pub fn renew(mut self, renew: Renew) -> Self {
        self.renew = renew;
        self
    }

    /// The longest time to hold the lock, from its grant. Then it is lost: a body is dropped,
    /// whatever [`on_lost`](Self::on_lost) says, and the lock given back; a guard says so and is no
    /// longer renewed. Default: no limit (and a warning after ten ttls).
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(max_hold);
        self
    }

    /// After work that succeeded, the key stays taken for that long. A day at most. Default: none.
    ///
    /// | who | applies it |
    /// | --- | --- |
    /// | the attribute | after `Ok`, and after any value that is no `Result` |
    /// | the layer | after an answer that says success |
    /// | [`run`](Self::run), [`run_with`](Self::run_with) | after every body that has ended, **an `Err` included**: say [`.cooldown_if(Result::is_ok)`](crate::Run::cooldown_if) |
    /// | a guard | when it is released, not when it is dropped |
    ///
    /// A body that was dropped, by a loss, a panic or a cancellation, is followed by none.
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.cooldown = cooldown;
        self
    }

    /// What happens to the body of `run` and `run_with` when the lock is lost. Default: dropped.
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Whether `run` and `run_with` wait for the release. Default: they do.
    pub fn release(mut self, release: ReleaseMode) -> Self {
        self.release = release;
        self
    }

    /// Whether `run` and `run_with` enter the lock when the calling code runs under it already:
    /// inside a body, a handler of the layer or a [`scope`](crate::LockHandle::scope) of the same
    /// key and manager. Default: they do.
    ///
    /// The outer lock is not left by it. What this request says is kept as far as it can be: the
    /// lease is extended to this ttl if that is the longer one, and renewed while the body runs if
    /// either asks for it; `max_hold` and `on_lost` are about this body; a `cooldown` is applied
    /// when the outer lock is released, or the outer one's if that is longer.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use lock_core::{ErrorKind, Reentrancy};
    ///
    /// let account = || locks.lock("account:7");
    /// let outcome = account()
    ///     .run(async {
    ///         account().run(async { /* inside the same lock */ }).await?;
    ///         account().reentrant(Reentrancy::Refuse).run(async {}).await
    ///     })
    ///     .await?;
    /// assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Invalid);
    /// # Ok(()) }
    /// ```
    pub fn reentrant(mut self, reentrancy: Reentrancy) -> Self {
        self.reentrancy = reentrancy;
        self
    }

    /// Whether clients of other libraries lock the same key. They stand in no queue and ask again and again:
    /// while processes of this kit wait for one another, such a client never finds the key free. With
    /// [`Interop::On`] it does, for 50 ms about once a second; every request for the key should say so.
    /// Default: [`Interop::Off`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use lock_core::{Interop, Wait};
    ///
    /// // A Python worker takes "stock" by redis-py, in the same Redis.
    /// let stock = locks.lock("stock").wait(Wait::Forever).interop(Interop::On);
    /// stock.run(async { /* count it */ }).await?;
    /// # Ok(()) }
    /// ```
    pub fn interop(mut self, interop: Interop) -> Self {
        self.interop = interop;
        self
    }

    /// How long the store may take to answer one question, before that is `Unavailable`. Zero is
    /// `Invalid`. Default: the manager's `operation_timeout`.
    pub fn acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = Some(timeout);
        self
    }

    /// Takes the lock.
    ///
    /// # Errors
    ///
    /// * `Busy`: another owner holds the key, and did to the end of the wait.
    /// * `Unavailable`: the store gave no answer; [`wait`](Self::wait) says when a caller that waits is told.
    /// * `Misconfigured`: the store will never accept this.
    /// * `Invalid`: the key or the ttl is out of bounds, or no manager is installed; or the calling
    ///   code runs under this very lock and would wait for itself (only [`run`](Self::run),
    ///   [`run_with`](Self::run_with) and the attribute enter a lock again).
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, it leaves no key behind: what may have been sent is undone in the
    /// background. If the store is out of reach, a key may stay for one ttl.
    ///
    /// # Panics
    ///
    /// Never.
    pub fn acquire(self) -> Acquire {
        Acquire(match self.spec() {
            Ok(spec) => Acquiring::Asking(Box::pin(take_guard(spec))),
            Err(error) => Acquiring::Invalid(Some(error)),
        })
    }

    /// Tries once, whatever `wait` says. `None`: another owner holds the key.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), without `Busy`.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub fn try_acquire(self) -> TryAcquire {
        TryAcquire(self.wait(Wait::None).acquire())
    }

    /// Takes the lock, runs `body`, gives the lock back. The body is dropped, before the release,
    /// when it has ended, when the lock is lost, when it panics and when this future is dropped.
    ///
    /// The lock is asked for with the defaults of the request; `Busy` is an error here. A
    /// [`cooldown`](Self::cooldown) follows whatever the body returns, an `Err` too, unless
    /// [`cooldown_if`](crate::Run::cooldown_if) says otherwise.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and `Lost` if the lock was lost while the body ran (with
    /// [`OnLost::Cancel`]) or `max_hold` was reached. A failed release is logged, not returned: the
    /// work is done.
    ///
    /// # Cancel safety
    ///
    /// The body is dropped, then the lock is given back in the background.
    pub fn run<F: Future>(self, body: F) -> Run<fn(LockHandle) -> F, F> {
        self.run_body(Body::made(body), |_| true)
    }

    /// As [`run`](Self::run), with a handle to the lock for the body.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// let fence = locks.lock("sku:7").run_with(|lock| async move { lock.fencing_token() }).await?;
    /// # let _ = fence; Ok(()) }
    /// ```
    pub fn run_with<C, F>(self, body: C) -> Run<C, F>
    where
        C: FnOnce(LockHandle) -> F,
        F: Future,
    {
        self.run_body(Body::new(body), |_| true)
    }

    /// `succeeded` says of the body's output whether its work is done: only then a cooldown counts.
    pub(crate) fn run_body<C, F: Future>(
        self,
        body: Body<C, F>,
        succeeded: fn(&F::Output) -> bool,
    ) -> Run<C, F> {
        let (on_lost, release, reentrancy) = (self.on_lost, self.release, self.reentrancy);
        let acquiring = match self.spec() {
            Ok(spec) => Acquiring::Asking(Box::pin(enter(spec, reentrancy))),
            Err(error) => Acquiring::Invalid(Some(error)),
        };
        Run::new(acquiring, body, succeeded, on_lost, release)
    }

    /// Finds settings that every verb would refuse, without asking the store: for code that makes
    /// requests from a configuration, and can say so at its start.
    ///
    /// # Errors
    ///
    /// `Invalid`: the key, the ttl, the cooldown or another span is out of bounds for this manager,
    /// or no manager is installed.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    ///
    /// let request = locks.lock("order:42").ttl(Duration::from_millis(1));
    /// assert!(request.check().unwrap_err().to_string().contains("10ms"));
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        let engine = self.engine.as_ref().map_err(Clone::clone)?;
        let key = self.key.clone().into_result()?;
        let checked = self.durations().checked(engine.max_ttl);
        checked.map(drop).map_err(|error| error.with_key(&key))
    }

    fn durations(&self) -> RequestDurations {
        RequestDurations {
            ttl: self.ttl,
            cooldown: self.cooldown,
            max_hold: self.max_hold,
            acquire_timeout: self.acquire_timeout,
        }
    }

    fn spec(self) -> Result<LockSpec, Error> {
        let durations = self.durations();
        let engine = self.engine?;
        let key = self.key.into_result()?;
        let ttl = durations.checked(engine.max_ttl);
        let ttl = ttl.map_err(|error| error.with_key(&key))?;
        Ok(LockSpec {
            options: LeaseOptions::new(ttl, self.renew == Renew::Auto, self.max_hold)
                .interop(self.interop),
            wait: self.wait.normal(),
            cooldown: self.cooldown,
            acquire_timeout: self.acquire_timeout.unwrap_or(engine.operation_timeout),
            engine,
            key,
        })
    }
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockRequest")
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
