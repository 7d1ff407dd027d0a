//! What a handler can know about the lock it runs under, and change.

use std::fmt;
use std::sync::Arc;
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
/// A request that was not locked (another method, [`MissingKey::Pass`](crate::MissingKey::Pass),
/// [`Outage::Pass`](crate::Outage::Pass), a duplicate in [shadow mode](crate::LockLayer::shadow))
/// has none: the extractor answers 500, `Option<LockContext>` is `None`.
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
///     let fence = i64::from(lock.fencing_token()); // … SET fence = $1 WHERE fence <= $1
///     if !lock.is_valid() { /* somebody else may be at it: stop before the next effect */ }
///     lock.cool_down(Duration::from_secs(60)); // from here on, whatever happens
///     # let _ = fence;
///     Response::new("paid".into())
/// }
/// # let _ = pay::<String>;
/// ```
#[derive(Clone)]
pub struct LockContext {
    shared: Arc<Shared>,
}

impl LockContext {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// That of the layer around this one, if there is one.
    pub(crate) fn outer(extensions: &Extensions) -> Option<&Arc<Shared>> {
        extensions.get().map(|context: &Self| &context.shared)
    }

    /// The number that a resource can check: higher for every grant of the key.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.shared.handle.fencing_token()
    }

    /// Whether the lock is held at this very moment.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.shared.handle.is_valid()
    }

    /// How long the lock stays valid if it is never renewed again; zero once it is lost or released.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.shared.handle.remaining()
    }

    /// Resolves when the lock is lost; never, if it is released first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn lost(&self) {
        self.shared.handle.lost().await;
    }

    /// Keeps the key taken for `cooldown` after the request, in place of the layer's cooldown and
    /// however the request ends: with an error, a panic, or a client that has gone. A day at most.
    ///
    /// The last call counts; after the lock was given back, none does.
    pub fn cool_down(&self, cooldown: Duration) {
        self.shared.ask(cooldown);
    }

    /// Gives the key back without a cooldown when the request ends, whatever its response says: the
    /// next try is welcome at once.
    ///
    /// The last call of this and [`cool_down`](Self::cool_down) counts; after the lock was given
    /// back, none does.
    pub fn skip_cooldown(&self) {
        self.shared.ask(Duration::ZERO);
    }

    /// Gives the lock back now, and the handler goes on without it: for what comes after the part
    /// that must not run twice. What [`cool_down`](Self::cool_down) has asked for counts; the
    /// layer's own cooldown, which depends on the response, does not.
    ///
    /// A second call, and one after the request has ended, does nothing and is `Ok`.
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
        self.shared.release().await
    }
}

impl fmt::Debug for LockContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockContext")
            .field("lock", &self.shared.handle)
            .finish()
    }
}
