//! What a handler can know about the lock it runs under, and change.

use std::fmt;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use http::Extensions;
use lock_core::{Error, FencingToken};

use crate::tenure::Shared;

/// The lock of a request, for its handler: in the request's extensions and, with the feature
/// `axum`, an extractor.
///
/// The handler goes on when the lock is lost; whether that matters is for the handler to say. Most
/// need only the [fencing token](Self::fencing_token), checked by the database that they write to.
///
/// The handler runs *inside* its lock: a `#[distributed_lock]` function, or a
/// [`run`](lock_core::LockRequest::run), that asks the same manager for the same key in there enters
/// it instead of waiting for its own request. A task that the handler spawns, and the body of its
/// answer, are not inside.
///
/// # Requests without a lock
///
/// | request | context | `Option` of it as an extractor |
/// | --- | --- | --- |
/// | locked | [`is_locked`](Self::is_locked) | `Some` |
/// | let pass: a duplicate in [shadow mode](crate::LockLayer::shadow), [`MissingKey::Pass`](crate::MissingKey::Pass), [`Outage::Pass`](crate::Outage::Pass) | not `is_locked`: no fencing token, nothing to lose, and nothing to release | `None` |
/// | of another [method](crate::LockLayer::methods), or outside of the layer | none; the extractor answers 500 | `None` |
///
/// A handler that must not run without a fencing token says so by what it does with a `None` from
/// [`fencing_token`](Self::fencing_token).
///
/// Behind two layers with different keys it is that of the inner one, and the handler runs inside
/// both locks.
///
/// A context that is kept beyond the request holds nothing: it says that the lock is gone.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use http::{Request, Response};
/// use lock_tower::LockContext;
///
/// async fn pay<B>(request: Request<B>) -> Response<String> {
///     let lock = request.extensions().get::<LockContext>().expect("behind the lock layer");
///     let fence = lock.fencing_token().map(i64::from); // … SET fence = $1 WHERE fence <= $1
///     if lock.is_lost() { /* another request may be at it: stop before the next effect */ }
///     lock.cool_down(Duration::from_secs(60)); // from here on, whatever happens
///     # let _ = fence;
///     Response::new("paid".into())
/// }
/// # let _ = pay::<String>;
/// ```
#[derive(Clone)]
pub struct LockContext {
    /// `None`: the request was let pass without one.
    lock: Option<Arc<Shared>>,
    /// Of the lock layer around that one, if there is one.
    outer: Option<Arc<Shared>>,
}

impl LockContext {
    pub(crate) fn locked(lock: Arc<Shared>) -> Self {
        Self {
            lock: Some(lock),
            outer: None,
        }
    }

    /// For a request that its layer lets pass.
    pub(crate) fn unlocked(extensions: &Extensions) -> Self {
        Self {
            lock: None,
            outer: Self::around(extensions).cloned(),
        }
    }

    /// The innermost lock that the request has already, if it has one.
    pub(crate) fn around(extensions: &Extensions) -> Option<&Arc<Shared>> {
        let context: &Self = extensions.get()?;
        context.lock.as_ref().or(context.outer.as_ref())
    }

    /// Whether the layer has taken the lock for this request. `false` where it let the request pass
    /// without one; a lock that was lost or released since then was taken all the same.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// The number that a resource can check: higher for every grant of the key. `None`: the request
    /// [has no lock](Self::is_locked).
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        Some(self.lock.as_ref()?.handle.fencing_token())
    }

    /// Whether the lock is held at this very moment: not without one, not after it was released.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.lock
            .as_ref()
            .is_some_and(|lock| lock.handle.is_valid())
    }

    /// Whether the lock was taken and is lost by now, so that another request may have it: what a
    /// long handler asks before its next effect. Not so without a lock, and after a release.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        let lost = pin!(self.lost());
        lost.poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    /// How long the lock stays valid if it is never renewed again; zero once it is lost or released,
    /// and without one.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.lock
            .as_ref()
            .map_or(Duration::ZERO, |lock| lock.handle.remaining())
    }

    /// Resolves when the lock is lost; never, if it is released first, or if there is none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn lost(&self) {
        match &self.lock {
            Some(lock) => lock.handle.lost().await,
            None => pending().await,
        }
    }

    /// Keeps the key taken for `cooldown` after the request, in place of the layer's cooldown and
    /// however the request ends: with an error, a panic, or a client that has gone. A day at most;
    /// longer than the manager's [`max_ttl`](lock_core::ManagerBuilder::max_ttl) is cut to that, with
    /// a warning in the log.
    ///
    /// The last call counts; after the lock was given back, and without one, none does.
    pub fn cool_down(&self, cooldown: Duration) {
        if let Some(lock) = &self.lock {
            lock.ask(cooldown);
        }
    }

    /// Gives the key back without a cooldown when the request ends, whatever its response says: the
    /// next try is welcome at once.
    ///
    /// The last call of this and [`cool_down`](Self::cool_down) counts; after the lock was given
    /// back, and without one, none does.
    pub fn skip_cooldown(&self) {
        self.cool_down(Duration::ZERO);
    }

    /// Gives the lock back now, and the handler goes on without it: for what comes after the part
    /// that must not run twice. What [`cool_down`](Self::cool_down) has asked for counts; the
    /// layer's own cooldown, which depends on the response, does not.
    ///
    /// A second call, one after the request has ended, and one without a lock does nothing and is
    /// `Ok`.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`](lock_core::LockGuard::release): the lock had been lost before, or
    /// the store did not answer and the release goes on in the background. Either way this request
    /// holds it no more.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the release goes on in the background.
    pub async fn release_now(&self) -> Result<(), Error> {
        match &self.lock {
            Some(lock) => lock.release().await,
            None => Ok(()),
        }
    }
}

impl fmt::Debug for LockContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lock = self.lock.as_ref().map(|lock| &lock.handle);
        f.debug_struct("LockContext").field("lock", &lock).finish()
    }
}
