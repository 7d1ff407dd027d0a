//! Settings that choose which requests a layer locks.

use http::{Method, StatusCode};

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
    /// With `replay`, these are the methods whose answers are repeated. If neither this list nor that of
    /// [`read_methods`](Self::read_methods) has a method, the layer is [`Invalid`](Self::checked).
    ///
    /// Default: POST, PUT, PATCH and DELETE.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with(|policy| policy.methods = methods.into_iter().collect())
    }

    /// Sets the methods whose requests share the key as readers, besides the [methods](Self::methods) that are locked.
    ///
    /// Readers run beside one another, and no other locked request of the key runs at the same time. A reader that
    /// comes behind a waiting writer waits too, as far as [`wait`](Self::wait) allows, or is refused with 409.
    ///
    /// If GET is in the list, HEAD is too. A method in both lists reads. With [`permits`](Self::permits), `replay` or a [cooldown](Self::cooldown) the
    /// layer is [`Invalid`](Self::checked): the cooldown after a writer would refuse readers, which repeat nothing. A
    /// second layer with a key of its own can have the cooldown. If a writer
    /// [is dropped](crate::Disconnect::HoldUntilTtl) or [requests a cooldown](crate::LockContext::cool_down), readers are
    /// refused, too. A reader keeps the key for no other request.
    ///
    /// Default: none.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), lock_tower::TemplateError> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    /// use http::Method;
    /// use lock_tower::LockLayer;
    ///
    /// // Many clients read a document, and one at a time changes it.
    /// let layer = LockLayer::template(locks, "doc:<param.id>")?
    ///     .read_methods([Method::GET])
    ///     .wait(Duration::from_secs(2));
    /// # let _ = layer; Ok(()) }
    /// ```
    pub fn read_methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with(|policy| policy.read_methods = methods.into_iter().collect())
    }

    /// Lets `count` requests with one key run at a time, 1 to 10 000.
    ///
    /// A request beyond that is refused with 429 `lock_full` ([`full_status`](Self::full_status)), or waits in the order
    /// of arrival if [`wait`](Self::wait) is set. If a process dies, its requests alone give their permits back, after the
    /// [`ttl`](Self::ttl).
    ///
    /// With a [cooldown](Self::cooldown) of any kind, [`HoldUntilTtl`](crate::Disconnect::HoldUntilTtl),
    /// [`read_methods`](Self::read_methods) or `replay`, and over several servers (`redlock://`), the layer is
    /// [`Invalid`](Self::checked).
    ///
    /// A GET is not limited, unless [`methods`](Self::methods) names it.
    ///
    /// Default: one request at a time, and 409 for another one.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), lock_tower::TemplateError> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use lock_tower::LockLayer;
    ///
    /// // Each tenant has five exports at a time.
    /// let layer = LockLayer::template(locks, "exports:<header.x-tenant>")?.permits(5);
    /// # let _ = layer; Ok(()) }
    /// ```
    pub fn permits(self, count: u32) -> Self {
        self.with(|policy| policy.permits = Some(count))
    }

    /// Sets the status of a request that finds all [permits](Self::permits) taken.
    ///
    /// Without permits the layer is [`Invalid`](Self::checked).
    ///
    /// Default: 429.
    pub fn full_status(self, status: StatusCode) -> Self {
        self.with(|policy| policy.full_status = Some(status))
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
