//! A request for a lock, and its options.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::installed::AsLockManager;
use crate::api::manager::LockManager;
use crate::api::requested_keys::RequestedKeys;
use crate::api::settings::check_watch;
use crate::base::error::Error;
use crate::base::key::LockKey;
use crate::base::options::{
    Interop, OnLost, Reentrancy, ReleaseMode, Renew, RequestDurations, Wait, Watch,
};
use crate::base::share::ShareLimit;
use crate::engine::Engine;
use crate::engine::spec::LockSpec;
use crate::lease::LeaseOptions;

/// Describes a lock to acquire.
///
/// [`LockManager::lock`] creates a request, and its builder methods set the options. One of
/// [`acquire`](Self::acquire), [`try_acquire`](Self::try_acquire), [`run`](Self::run) and
/// [`run_with`](Self::run_with) consumes it. `.await` on the request itself acquires the lock, as
/// `acquire` does.
///
/// A request owns its parts, so `tokio::spawn(locks.lock("k").acquire())` compiles. A request that
/// is dropped locks nothing. The consuming method reports an invalid key or option.
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
#[must_use = "a request does nothing until it, or `acquire`, `try_acquire`, `run` or `run_with`, is awaited"]
pub struct LockRequest {
    engine: Result<Arc<Engine>, Error>,
    keys: RequestedKeys,
    durations: RequestDurations,
    wait: Wait,
    renew: Renew,
    pub(super) on_lost: OnLost,
    pub(super) release: ReleaseMode,
    pub(super) reentrancy: Reentrancy,
    pub(super) interop: Interop,
    pub(super) watch: Watch,
    share: Option<Result<ShareLimit, Error>>,
}

impl LockRequest {
    /// Creates the request of an attribute with `manager = …`.
    ///
    /// The compiler names this function in its error about a wrong manager.
    #[doc(hidden)]
    pub fn by<M: AsLockManager + ?Sized>(manager: &M, key: LockKey) -> Self {
        manager.as_lock_manager().lock(key)
    }

    /// As [`by`](Self::by), for an attribute with `keys = …`.
    #[doc(hidden)]
    pub fn all_by<M: AsLockManager + ?Sized>(manager: &M, keys: Vec<LockKey>) -> Self {
        manager.as_lock_manager().lock_all(keys)
    }

    pub(crate) fn new(manager: Result<&LockManager, Error>, keys: RequestedKeys) -> Self {
        let engine = manager.map(|manager| Arc::clone(manager.engine()));
        let (ttl, wait) = engine
            .as_ref()
            .map_or((Duration::from_secs(30), Wait::None), |engine| {
                engine.defaults
            });
        Self {
            engine,
            keys,
            durations: RequestDurations {
                ttl,
                cooldown: Duration::ZERO,
                max_hold: None,
                acquire_timeout: None,
            },
            wait,
            renew: Renew::default(),
            on_lost: OnLost::default(),
            release: ReleaseMode::default(),
            reentrancy: Reentrancy::default(),
            watch: Watch::default(),
            interop: Interop::default(),
            share: None,
        }
    }

    /// Sets the time for which the lock outlives its last renewal. Default: 30 s.
    ///
    /// The others wait that long for an owner that crashed. The ttl is 10 ms to 24 h in whole
    /// milliseconds, rounded up, and at most the manager's
    /// [`max_ttl`](crate::ManagerBuilder::max_ttl).
    #[doc(alias = "lease")]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.durations.ttl = ttl;
        self
    }

    /// Sets how long to wait while another owner holds the key. Default: no wait.
    ///
    /// Each request to the store has its own [`acquire_timeout`](Self::acquire_timeout), the first
    /// and the last one too. So a wait for a store that does not answer may last that much longer.
    ///
    /// A wait for a store that does not answer may also be shorter. It ends with `Unavailable` when
    /// requests have failed for one second, counted from the end of the first failure. If each
    /// request runs into its `acquire_timeout`, the wait ends up to one second and two timeouts
    /// after the first request was sent (two seconds by default). If connections are refused, it
    /// ends after one second. An answer in between restarts the count.
    #[doc(alias = "timeout")]
    pub fn wait(mut self, wait: impl Into<Wait>) -> Self {
        self.wait = wait.into();
        self
    }

    /// Sets whether the keeper renews the lease while the lock is held. Default: it does.
    pub fn renew(mut self, renew: Renew) -> Self {
        self.renew = renew;
        self
    }

    /// Sets the longest time to hold the lock, from its grant. Default: no limit.
    ///
    /// After that time the lock is lost. A body is dropped, even if [`on_lost`](Self::on_lost) is
    /// `Ignore`, and the lock is released. A guard reports the loss and is no longer renewed.
    /// Without a limit, a warning is logged after ten ttls.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.durations.max_hold = Some(max_hold);
        self
    }

    /// Keeps the key taken for that time after work that succeeded. Default: no cooldown.
    ///
    /// A cooldown is at most a day. It depends on the caller when the cooldown starts:
    ///
    /// | caller | start of the cooldown |
    /// | --- | --- |
    /// | the attribute | after `Ok`, and after any value that is no `Result` |
    /// | the layer | after a response that means success |
    /// | `run`, `run_with` | after every body that has ended, **an `Err` included**; [`cooldown_if`] changes that |
    /// | a guard | when it is released, not when it is dropped |
    ///
    /// There is no cooldown after a body that was dropped by a loss, a panic or a cancellation.
    ///
    /// [`cooldown_if`]: crate::Run::cooldown_if
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.durations.cooldown = cooldown;
        self
    }

    /// Sets how `run` and `run_with` treat the body when the lock is lost.
    ///
    /// By default they drop the body.
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Sets whether `run` and `run_with` wait for the release. Default: they do.
    pub fn release(mut self, release: ReleaseMode) -> Self {
        self.release = release;
        self
    }

    /// Sets whether `run` and `run_with` enter a lock that the caller already holds.
    ///
    /// The caller holds the lock inside a body, a handler of the layer or a
    /// [`scope`](crate::LockHandle::scope) of the same key and manager. By default the methods
    /// enter the lock.
    ///
    /// The nested call does not release the outer lock. The options of this request apply as far as
    /// possible:
    ///
    /// * The lease is extended to this ttl if it is longer than the outer one. The lease is renewed
    ///   while the body runs if either request asks for it.
    /// * `max_hold` and `on_lost` apply to this body.
    /// * The longer of the two cooldowns applies when the outer lock is released.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use lock_core::Reentrancy;
    ///
    /// let account = || locks.lock("account:7");
    /// let outcome = account()
    ///     .run(async {
    ///         account().run(async { /* inside the same lock */ }).await?;
    ///         account().reentrant(Reentrancy::Refuse).run(async {}).await
    ///     })
    ///     .await?;
    /// assert!(outcome.unwrap_err().is_invalid());
    /// # Ok(()) }
    /// ```
    pub fn reentrant(mut self, reentrancy: Reentrancy) -> Self {
        self.reentrancy = reentrancy;
        self
    }

    /// Acquires the key as a reader: readers share it, and no writer is inside at the same time.
    ///
    /// A writer is a request without this option; it waits until all readers have left. Permits of the key exclude
    /// readers too. The store serves waiters in the order in which they reached it, so a reader that comes behind a
    /// waiting writer waits too. Each reader has a lease of its own. If its process dies, its share alone ends with its
    /// ttl.
    ///
    /// The fencing token of a reader is above those of all earlier writers, and below those of all later ones.
    /// Readers may have equal tokens.
    ///
    /// Over several servers (Redlock) admission is not fair between processes, as for plain locks: each server has an order
    /// of its own, and a free key goes to the first that asks.
    ///
    /// A reader has no [`cooldown`](Self::cooldown) and no [`interop`](Self::interop) gap. With
    /// [`permits`](Self::permits) it is `Invalid`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// let one = locks.lock("catalog").read().acquire().await?;
    /// let other = locks.lock("catalog").read().acquire().await?;
    /// let writer = locks.lock("catalog").try_acquire().await?;
    /// assert!(writer.is_none());
    /// # drop((one, other)); Ok(()) }
    /// ```
    #[doc(alias = "rwlock")]
    pub fn read(mut self) -> Self {
        self.share = Some(match self.share {
            None => Ok(ShareLimit::READERS),
            Some(_) => Err(two_kinds()),
        });
        self
    }

    /// Acquires one of `count` permits of the key, 1 to 10 000.
    ///
    /// The request enters while fewer than `count` owners are inside. If all permits are taken, it is refused with
    /// `Busy`, and [`is_full`](Error::is_full) is true. The store serves waiters in the order in which they reached it.
    /// Each owner has a lease of its own. If its process dies, its permit alone comes back after its ttl.
    ///
    /// The store keeps no count: each request brings its own. If a new version of a program asks for 5 permits and the
    /// old one asked for 8, its requests enter when fewer than 5 owners are inside. A request without this option
    /// waits for all permits, and excludes them. So does a [reader](Self::read), and the other way round.
    ///
    /// A permit has no [`cooldown`](Self::cooldown) and no [`interop`](Self::interop) gap. With [`read`](Self::read) it
    /// is `Invalid`. Permits are not offered over several servers (Redlock), because two majorities of servers can
    /// admit more owners than the limit.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// let exports = || locks.lock("exports:tenant-7").permits(2);
    /// let _two = (exports().acquire().await?, exports().acquire().await?);
    /// assert!(exports().acquire().await.unwrap_err().is_full());
    /// # Ok(()) }
    /// ```
    #[doc(alias = "semaphore")]
    pub fn permits(mut self, count: u32) -> Self {
        self.share = Some(match self.share {
            None => ShareLimit::permits(count),
            Some(_) => Err(two_kinds()),
        });
        self
    }

    /// Sets how long the store may take to answer one request.
    ///
    /// After that time the request fails with `Unavailable`. Zero is `Invalid`. Default: the
    /// manager's `operation_timeout`.
    #[doc(alias = "timeout")]
    pub fn acquire_timeout(mut self, timeout: Duration) -> Self {
        self.durations.acquire_timeout = Some(timeout);
        self
    }

    /// Checks the settings of the request without asking the store.
    ///
    /// It finds the settings that every acquiring method would refuse. Code that builds requests
    /// from a configuration can call it at the start.
    ///
    /// # Errors
    ///
    /// `Invalid` if a key, the number of keys, the ttl, the cooldown or another duration is out of bounds for this
    /// manager, if two settings contradict each other, if the store refuses a setting, or if no manager is installed.
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
        self.engine.as_ref().map_err(Clone::clone)?;
        let (key, _) = self.keys.clone().in_order()?;
        let checked = self.checked().map(drop);
        checked.map_err(|error| error.with_key(&key))
    }

    /// Returns the ttl and the limit of a share, unless the options or the store rule them out.
    fn checked(&self) -> Result<(Duration, Option<ShareLimit>), Error> {
        let engine = self.engine.as_ref().map_err(Clone::clone)?;
        let ttl = self.durations.checked(engine.max_ttl)?;
        let share = self.checked_share(engine)?;
        check_watch(self.watch, self.renew, share.is_some())?;
        Ok((ttl, share))
    }

    /// Returns the limit of a share, unless other options or the store rule it out.
    fn checked_share(&self, engine: &Engine) -> Result<Option<ShareLimit>, Error> {
        if self.interop == Interop::On
            && self.share.is_none()
            && let Some(reason) = engine.store.refuses_interop()
        {
            return Err(Error::invalid(reason));
        }
        let Some(share) = self.share.clone().transpose()? else {
            return Ok(None);
        };
        if matches!(self.keys, RequestedKeys::All(_)) {
            return Err(Error::invalid(
                "a lock of several keys has no readers and no permits; leave `read` and `permits` out, or lock one key",
            ));
        }
        if self.durations.cooldown > Duration::ZERO {
            return Err(Error::invalid(
                "a reader or a permit has no cooldown, because other owners have the key beside it; leave `cooldown` \
                 out, or acquire the key as a plain lock",
            ));
        }
        if self.interop == Interop::On {
            return Err(Error::invalid(
                "a reader or a permit leaves no gaps to clients of other libraries; set `interop` on the plain \
                 locks of the key only",
            ));
        }
        match engine.store.refuses_share(share) {
            Some(reason) => Err(Error::invalid(reason)),
            None => Ok(Some(share)),
        }
    }

    pub(super) fn spec(self) -> Result<LockSpec, Error> {
        let durations = self.durations;
        let checked = self.checked();
        let engine = self.engine?;
        let (key, others) = self.keys.in_order()?;
        let (ttl, share) = checked.map_err(|error| error.with_key(&key))?;
        Ok(LockSpec {
            share,
            options: LeaseOptions::new(ttl, self.renew == Renew::Auto, durations.max_hold)
                .interop(self.interop)
                .watch(self.watch),
            wait: self.wait.normal(),
            cooldown: durations.cooldown,
            acquire_timeout: durations
                .acquire_timeout
                .unwrap_or(engine.operation_timeout),
            engine,
            key,
            others,
        })
    }
}

fn two_kinds() -> Error {
    Error::invalid(
        "the request sets `read` or `permits` twice; a share is either a reader or one of so many permits",
    )
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockRequest")
            .field("ttl", &self.durations.ttl)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
