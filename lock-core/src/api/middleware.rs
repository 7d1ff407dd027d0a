//! The methods that a middleware needs beyond those of an application.
//!
//! A middleware acquires a lock for each request, runs a handler inside it, and releases it before it
//! responds. `lock_tower` is such a middleware for HTTP. This module lists the methods that help to
//! write another one, for example for a message queue or for commands:
//!
//! | method | purpose |
//! | --- | --- |
//! | [`LockHandle::scope`] | runs the handler inside its lock, so that a nested call with the same key enters the lock |
//! | [`LockGuard::release_within`] | delays the response only for a bounded time |
//! | [`LockHandle::is_for`] | detects an outer middleware that already holds the same lock |
//! | [`LockHandle::observe_long_hold`] | reports a handler that hangs with the middleware's own words |
//! | [`LockManager::namespace`] | is half of a lock's name, from which identifiers are derived |
//! | [`LockManager::is_draining`] | distinguishes a process that shuts down from an outage of the store |
//! | [`LockRequest::check`] | finds invalid settings at startup |
//! | [`LockHandle::remember`] | leaves a record in the key, which the next requests get with their refusal ([`Error::record`]) |
//! | [`LockManager::forget`] | deletes a record |
//! | [`Error::invalid`] | reports the middleware's own invalid settings in the same way |
//!
//! # Examples
//!
//! A minimal middleware that refuses to run two jobs with the same name at a time:
//!
//! ```
//! use std::time::Duration;
//! use lock_core::{Error, LockManager};
//!
//! struct OneJobAtATime {
//!     locks: LockManager,
//! }
//!
//! impl OneJobAtATime {
//!     async fn call<T>(&self, job: &str, handler: impl Future<Output = T>) -> Result<T, Error> {
//!         let request = self.locks.lock(job).ttl(Duration::from_secs(30));
//!         let guard = request.acquire().await?; // `Busy` while the job runs elsewhere
//!         let output = guard.scope(handler).await;
//!         match guard.release_within(Duration::from_millis(250)).await {
//!             Some(Ok(())) => {}
//!             Some(Err(error)) => eprintln!("the release of a job's lock failed: {error}"),
//!             None => {} // the release goes on in the background
//!         }
//!         Ok(output)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
//! let middleware = OneJobAtATime { locks: LockManager::in_memory() };
//! assert_eq!(middleware.call("report", async { 7 }).await?, 7);
//! # Ok(()) }
//! ```
//!
//! [`LockRequest::check`]: crate::LockRequest::check
//! [`LockGuard::release_within`]: crate::LockGuard::release_within
//! [`Error::invalid`]: crate::Error::invalid
//! [`Error::record`]: crate::Error::record

use std::sync::{Arc, Weak};

pub use crate::active::LongHoldObserver;
use crate::api::handle::LockHandle;
use crate::api::manager::LockManager;
use crate::base::key::LockKey;
pub use crate::base::record::{MAX_RECORD, RecordOutcome};
pub use crate::store::Forgotten;

impl LockHandle {
    /// Returns whether this is the lock of `key` at `manager`, alone or with other keys, held or not.
    ///
    /// A middleware that acquired the same lock again inside of an outer one would wait for its own
    /// request. Combine it with [`is_valid`](Self::is_valid) to find out whether the lock is held.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::{LockKey, LockManager};
    ///
    /// let (locks, others) = (LockManager::in_memory(), LockManager::in_memory());
    /// let guard = locks.lock("order:42").acquire().await?;
    /// assert!(guard.is_for(&locks, &LockKey::from("order:42")));
    /// assert!(!guard.is_for(&locks, &LockKey::from("order:43")));
    /// assert!(!guard.is_for(&others, &LockKey::from("order:42")));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is_for(&self, manager: &LockManager, key: &LockKey) -> bool {
        let here = Arc::ptr_eq(&self.engine, manager.engine());
        here && key.as_str().is_some_and(|key| self.lease.covers(key))
    }

    /// Replaces the log line about a very long hold by a call of `observer`.
    ///
    /// Without an observer, the log has a warning when the lock has been held for ten ttls, and again
    /// whenever the time has doubled. If the observer is dropped, there is no report. A lock has one
    /// observer; a second call replaces it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// use std::sync::{Arc, Weak};
    /// use std::time::Duration;
    /// use lock_core::LockManager;
    /// use lock_core::middleware::LongHoldObserver;
    ///
    /// struct Job { name: &'static str }
    ///
    /// impl LongHoldObserver for Job {
    ///     fn on_long_hold(&self, held_for: Duration) {
    ///         eprintln!("the job {} has held its lock for {held_for:?}", self.name);
    ///     }
    /// }
    ///
    /// let locks = LockManager::in_memory();
    /// let job = Arc::new(Job { name: "report" });
    /// let guard = locks.lock("report").acquire().await?;
    /// let observer: Weak<Job> = Arc::downgrade(&job);
    /// guard.observe_long_hold(observer);
    /// # Ok(()) }
    /// ```
    pub fn observe_long_hold(&self, observer: Weak<dyn LongHoldObserver>) {
        self.lease.watch(observer);
    }
}

impl LockManager {
    /// Returns the [namespace](crate::ManagerBuilder::namespace), which the names of all locks begin with.
    ///
    /// A middleware that derives an identifier from the name of a lock has two parts to derive it from: the namespace
    /// and the key. The embedded store keeps its locks without a namespace, and has one here all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(lock_core::LockManager::in_memory().namespace(), "lockkit:");
    /// ```
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.engine().namespace
    }

    /// Returns whether [`drain`](Self::drain) has been called, so that the manager grants no more locks.
    ///
    /// Its requests then fail with [`Unavailable`](crate::ErrorKind::Unavailable), although the store
    /// may answer other processes. A middleware that runs handlers without a lock during an outage of
    /// the store must not do so in this case.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    ///
    /// assert!(!locks.is_draining());
    /// locks.drain(Duration::from_secs(1)).await;
    /// assert!(locks.is_draining());
    /// # }
    /// ```
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.engine().queue.is_draining()
    }
}
