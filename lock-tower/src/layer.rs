//! The layer: what a service is told about its locks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use lock_core::{LockManager, Wait};
use tower_layer::Layer;

use crate::key::HeadOnly;
use crate::policy::{MissingKey, Policy};
use crate::service::LockService;

/// Refuses a request while another one with the same key is under way, or was a moment ago.
///
/// The [crate's documentation](crate) says what happens to a request step by step, what a template
/// may name, and where the layer belongs among others.
///
/// | what | default |
/// | --- | --- |
/// | [`methods`](Self::methods) | POST, PUT, PATCH, DELETE |
/// | [`ttl`](Self::ttl) | 30 s, renewed while the handler runs |
/// | [`wait`](Self::wait) | none: a duplicate is refused at once |
/// | [`cooldown`](Self::cooldown) | none; set one |
/// | [`on_missing_key`](Self::on_missing_key) | 400 |
/// | [`acquire_timeout`](Self::acquire_timeout) | 250 ms, then 503 |
/// | [`release_timeout`](Self::release_timeout) | 250 ms, then in the background |
///
/// `K` is what its key is made of: the head of a request, or its body too. Constructors choose it.
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), lock_tower::TemplateError> {
/// # let locks = lock_core::LockManager::in_memory();
/// use std::time::Duration;
/// use lock_tower::LockLayer;
///
/// let layer = LockLayer::template(locks, "submit:<header.x-user-id>:<method>:<route>")?
///     .ttl(Duration::from_secs(10))
///     .cooldown(Duration::from_secs(2));
/// # let _ = layer; Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct LockLayer<K = HeadOnly> {
    policy: Arc<Policy>,
    key: K,
}

impl<K> LockLayer<K> {
    /// The methods that are locked; all others pass untouched, without a question to the store.
    ///
    /// Default: POST, PUT, PATCH and DELETE. GET, HEAD and OPTIONS are locked only if they are
    /// named here.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with(|policy| policy.methods = methods.into_iter().collect())
    }

    /// How long the lock outlives its last renewal: what a process that was killed in the middle of
    /// a request costs that user. Renewed as long as the handler runs, however long that is.
    ///
    /// From 10 ms to 24 h; anything else answers every request with 500 and the code
    /// `lock_invalid`. Default: 30 s.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with(|policy| policy.ttl = ttl)
    }

    /// How long a duplicate waits for the first request to end, and then *runs*, before it is
    /// refused. Default: not at all.
    ///
    /// That makes requests of one key run one after the other; it does not make them one. A request
    /// that waits out its time while nothing is known of the lock is answered with 503.
    pub fn wait(self, wait: impl Into<Wait>) -> Self {
        let wait = wait.into();
        self.with(|policy| policy.wait = wait)
    }

    /// How long the key stays taken after a request that succeeded: one answered with 2xx, or with
    /// 303, as forms are. Counted from the release, so a handler may take longer than that.
    ///
    /// Without a cooldown the lock stops requests that *overlap*, and the second click of a double
    /// click that comes after a fast answer is served again. Two seconds stop it too. A request
    /// that failed may be repeated at once. A day at most. Default: none.
    pub fn cooldown(self, cooldown: Duration) -> Self {
        self.with(|policy| policy.cooldown = cooldown)
    }

    /// What happens to a request that names nothing to lock. Default: [`MissingKey::Reject`].
    pub fn on_missing_key(self, missing_key: MissingKey) -> Self {
        self.with(|policy| policy.missing_key = missing_key)
    }

    /// How long the store may take to answer before the request is answered with 503.
    /// Default: 250 ms.
    pub fn acquire_timeout(self, timeout: Duration) -> Self {
        self.with(|policy| policy.acquire_timeout = timeout)
    }

    /// How long the handler's answer is held back for the store to confirm the release, so that a
    /// client that has read it finds the lock free. After that the answer is sent and the release
    /// goes on in the background. Default: 250 ms.
    pub fn release_timeout(self, timeout: Duration) -> Self {
        self.with(|policy| policy.release_timeout = timeout)
    }
}

impl<K> LockLayer<K> {
    pub(crate) fn new(locks: LockManager, key: K) -> Self {
        Self {
            policy: Arc::new(Policy::new(locks)),
            key,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(Arc::make_mut(&mut self.policy));
        self
    }
}

impl<S, K: Clone> Layer<S> for LockLayer<K> {
    type Service = LockService<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        LockService::new(inner, Arc::clone(&self.policy), self.key.clone())
    }
}

impl<K> fmt::Debug for LockLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockLayer")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
