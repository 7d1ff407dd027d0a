//! What a handler can know about the lock it runs under.

use std::time::Duration;

use lock_core::{FencingToken, LockHandle};

/// The lock of a request, for its handler: in the request's extensions and, with the feature
/// `axum`, an extractor.
///
/// The handler goes on when the lock is lost; whether that matters is for the handler to say. Most
/// need only the [fencing token](Self::fencing_token), checked by the database that they write to.
///
/// A request that was not locked (another method, or [`MissingKey::Pass`](crate::MissingKey::Pass))
/// has none: the extractor answers 500, `Option<LockContext>` is `None`.
///
/// # Examples
///
/// ```
/// use http::{Request, Response};
/// use lock_tower::LockContext;
///
/// async fn create<B>(request: Request<B>) -> Response<String> {
///     let lock = request.extensions().get::<LockContext>().expect("behind the lock layer");
///     let fence = i64::from(lock.fencing_token()); // … WHERE fence < $1
///     if !lock.is_valid() { /* somebody else may be at it: stop before the next effect */ }
///     # let _ = fence;
///     Response::new("created".into())
/// }
/// # let _ = create::<String>;
/// ```
#[derive(Clone, Debug)]
pub struct LockContext {
    handle: LockHandle,
}

impl LockContext {
    pub(crate) fn new(handle: LockHandle) -> Self {
        Self { handle }
    }

    /// The number that a resource can check: higher for every grant of the key.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.handle.fencing_token()
    }

    /// Whether the lock is held at this very moment.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.handle.is_valid()
    }

    /// How long the lock stays valid if it is never renewed again; zero once it is lost or released.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.handle.remaining()
    }

    /// Resolves when the lock is lost; never, if it is released first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn lost(&self) {
        self.handle.lost().await;
    }
}
