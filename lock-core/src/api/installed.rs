//! The default manager of the attribute: the scope's manager, else the installed one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::task::futures::TaskLocalFuture;

use crate::api::manager::LockManager;
use crate::base::error::Error;

static INSTALLED: OnceLock<LockManager> = OnceLock::new();

tokio::task_local! {
    static SCOPED: LockManager;
}

impl LockManager {
    /// Makes this manager the default of the process.
    ///
    /// Every `#[distributed_lock]` without `manager = …` uses the default. Call this method once,
    /// at the start.
    ///
    /// # Errors
    ///
    /// `Invalid` if another manager is installed already. Installing the same manager again is
    /// fine.
    pub fn install(&self) -> Result<(), Error> {
        let installed = INSTALLED.get_or_init(|| self.clone());
        if Arc::ptr_eq(installed.engine(), self.engine()) {
            return Ok(());
        }
        Err(Error::invalid(
            "another lock manager is installed in this process already; \
             for a second one write `manager = …` in the attribute, or run the task in `manager.scope(…)`",
        ))
    }

    /// Returns the manager of the enclosing [`scope`](Self::scope), else the
    /// [installed](Self::install) one.
    ///
    /// # Errors
    ///
    /// `Invalid` if neither exists.
    pub fn installed() -> Result<Self, Error> {
        if let Ok(scoped) = SCOPED.try_with(Clone::clone) {
            return Ok(scoped);
        }
        INSTALLED.get().cloned().ok_or_else(|| {
            Error::invalid(
                "no lock manager is installed; call `LockManager::connect(url).await?.install()?` when the \
                 program starts, write `manager = …` in the attribute, or run the task in `manager.scope(…)`. A task \
                 that is spawned leaves the scope; spawn `LockManager::installed()?.scope(task)`",
            )
        })
    }

    /// Runs `future` with this manager as the default of `#[distributed_lock]`.
    ///
    /// The method is for a test, or for a task that uses another store. Tasks that `future` spawns
    /// do not inherit the manager. To carry it over, the future that spawns a task wraps it in
    /// `LockManager::installed()?.scope(task)`.
    ///
    /// # Cancel safety
    ///
    /// This future is as cancel-safe as `future`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "macros")] mod example {
    /// # use lock_core::{distributed_lock, LockManager};
    /// #[distributed_lock(key = "order:<uid>", ttl = "10s")]
    /// async fn place_order(uid: u64) -> Result<(), lock_core::Error> { Ok(()) }
    ///
    /// # #[tokio::main(flavor = "current_thread")] pub async fn main() -> Result<(), lock_core::Error> {
    /// LockManager::in_memory().scope(place_order(7)).await
    /// # } }
    /// # #[cfg(feature = "macros")] fn main() { example::main().unwrap() }
    /// # #[cfg(not(feature = "macros"))] fn main() {}
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> Scope<F> {
        Scope {
            inner: SCOPED.scope(self.clone(), future),
        }
    }
}

pin_project! {
    /// The future of [`LockManager::scope`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Scope<F> {
        #[pin]
        inner: TaskLocalFuture<LockManager, F>,
    }
}

impl<F: Future> Future for Scope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.project().inner.poll(context)
    }
}

impl<F> fmt::Debug for Scope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scope")
    }
}

/// A value that provides a lock manager for the attribute's `manager = …`.
///
/// A [`LockManager`], a reference to one and an `Arc` of one are such values. Implement the trait
/// for an application state that contains a manager.
///
/// # Examples
///
/// ```
/// use lock_core::{AsLockManager, LockManager};
///
/// struct App { locks: LockManager }
///
/// impl AsLockManager for App {
///     fn as_lock_manager(&self) -> LockManager { self.locks.clone() }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a lock manager",
    label = "`manager = …` takes a `LockManager`, a reference or an `Arc` to one",
    note = "for a type of your own, implement `lock_core::AsLockManager`"
)]
pub trait AsLockManager {
    /// Returns the manager; clones are cheap.
    fn as_lock_manager(&self) -> LockManager;
}

impl AsLockManager for LockManager {
    fn as_lock_manager(&self) -> LockManager {
        self.clone()
    }
}

#[diagnostic::do_not_recommend]
impl<T: AsLockManager + ?Sized> AsLockManager for &T {
    fn as_lock_manager(&self) -> LockManager {
        (**self).as_lock_manager()
    }
}

// For `manager = self` in a method with `&mut self`.
#[diagnostic::do_not_recommend]
impl<T: AsLockManager + ?Sized> AsLockManager for &mut T {
    fn as_lock_manager(&self) -> LockManager {
        (**self).as_lock_manager()
    }
}

#[diagnostic::do_not_recommend]
impl<T: AsLockManager + ?Sized> AsLockManager for Arc<T> {
    fn as_lock_manager(&self) -> LockManager {
        (**self).as_lock_manager()
    }
}
