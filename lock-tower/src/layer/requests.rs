//! Settings that choose which requests a layer locks.

use http::Method;

use super::LockLayer;
use crate::options::MissingKey;

/// Which requests the layer locks.
impl<K> LockLayer<K> {
    /// Sets the methods that are locked. Requests with other methods pass, and the store is not asked.
    ///
    /// GET and OPTIONS are locked only if they are listed here. Methods are compared exactly, so
    /// `post` is not POST. Behind a route for any method (`axum::routing::any`), a client could choose
    /// a method that is not locked. Route only the methods that the handler serves.
    ///
    /// If GET is locked, HEAD is locked under the same key, because `<method>` is `GET` for both. axum
    /// and other frameworks answer HEAD with the handler of GET.
    ///
    /// Default: POST, PUT, PATCH and DELETE.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with(|policy| policy.methods = methods.into_iter().collect())
    }

    /// Decides what happens to a request that lacks a value of its key.
    ///
    /// Default: [`MissingKey::Reject`].
    pub fn on_missing_key(self, missing_key: MissingKey) -> Self {
        self.with(|policy| policy.missing_key = missing_key)
    }

    /// Turns on shadow mode, in which the layer refuses nothing.
    ///
    /// It shows on real traffic which requests the layer would refuse. Such a request runs without a
    /// lock, is counted in the metrics and is logged at level `info`. Its
    /// [`LockContext`](crate::LockContext) says that it is [not
    /// locked](crate::LockContext::is_locked).
    ///
    /// The layer acquires, holds and cools down locks as usual. Each request therefore still waits for
    /// the store, at most for [`acquire_timeout`](Self::acquire_timeout). No request
    /// [waits](Self::wait) for another request.
    ///
    /// Default: off.
    pub fn shadow(self) -> Self {
        self.with(|policy| policy.shadow = true)
    }
}
