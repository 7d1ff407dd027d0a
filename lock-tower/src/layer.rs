//! The layer: what a service is told about its locks.

use std::fmt;
use std::sync::{Arc, OnceLock};

use lock_core::LockManager;
use tower_layer::Layer;

use crate::key::HeadOnly;
use crate::policy::Policy;
use crate::service::LockService;

/// Refuses a request while another one with the same key is under way, or was a moment ago.
///
/// The [crate's documentation](crate) says what happens to a request step by step, what a template
/// may name, and where the layer belongs among others.
///
/// What it does can be chosen, each choice with its trade-off at its method:
///
/// | which requests | default |
/// | --- | --- |
/// | [`methods`](Self::methods) | POST, PUT, PATCH, DELETE |
/// | [`on_missing_key`](Self::on_missing_key) | 400 |
/// | [`shadow`](Self::shadow) | off: what is refused is refused |
///
/// | the lock | default |
/// | --- | --- |
/// | [`ttl`](Self::ttl) | 30 s |
/// | [`renew`](Self::renew) | as long as the handler runs |
/// | [`max_hold`](Self::max_hold) | no limit |
/// | [`acquire_timeout`](Self::acquire_timeout) | 250 ms, then 503 |
/// | [`release_timeout`](Self::release_timeout) | 250 ms, then in the background |
/// | [`release_at`](Self::release_at) | the answer's head |
/// | [`on_disconnect`](Self::on_disconnect) | the handler runs to its end |
/// | [`on_outage`](Self::on_outage) | 503 |
///
/// | duplicates | default |
/// | --- | --- |
/// | [`wait`](Self::wait) | none: refused at once |
/// | [`cooldown`](Self::cooldown), [`min_interval`](Self::min_interval), [`cooldown_with`](Self::cooldown_with) | none; set one |
/// | [`refusals`](Self::refusals), [`on_reject`](Self::on_reject) | problem+json |
/// | [`problem_types`](Self::problem_types) | `urn:lockkit:problem:` |
/// | [`retry_hint`](Self::retry_hint) | 1 s |
///
/// | operations | default |
/// | --- | --- |
/// | [`name`](Self::name), for log lines and metrics | `lock` |
/// | [`in_flight`](Self::in_flight), to wait for handlers at shutdown | |
/// | [`checked`](Self::checked), to fail at the start where a setting is out of bounds | an error in the log, and 500 |
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
    pub(crate) policy: Arc<Policy>,
    key: K,
}

impl<K> LockLayer<K> {
    pub(crate) fn new(locks: LockManager, key: K) -> Self {
        Self {
            policy: Arc::new(Policy::new(locks)),
            key,
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        let policy = Arc::make_mut(&mut self.policy);
        policy.checked = OnceLock::new();
        change(policy);
        self
    }
}

impl<S, K: Clone> Layer<S> for LockLayer<K> {
    type Service = LockService<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        // A layer cannot fail here; a fault is in the log before the first request comes.
        let _ = self.policy.fault();
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
