//! The layer: its constructors, its settings, and the service that it makes.

mod constructors;
mod duplicates;
mod key_of;
mod lock;
mod operations;
#[cfg(feature = "replay")]
mod replay;
mod requests;

use std::fmt;
use std::sync::{Arc, OnceLock};

use lock_core::LockManager;
use tower_layer::Layer;

use crate::key::HeadOnly;
use crate::policy::Policy;
use crate::service::LockService;

/// Refuses a request while another one with the same key is in flight or cools down.
///
/// The [crate's documentation](crate) describes each step of a request, the sources of a template,
/// and the place of the layer among others.
///
/// These methods change the layer's settings. Each one documents its trade-off.
///
/// | requests | default |
/// | --- | --- |
/// | [`methods`](Self::methods) | POST, PUT, PATCH, DELETE |
/// | [`read_methods`](Self::read_methods) | none; every locked request has its key alone |
/// | [`permits`](Self::permits), [`full_status`](Self::full_status) | one request at a time; 429 beyond the permits |
/// | [`on_missing_key`](Self::on_missing_key) | 400 |
/// | [`shadow`](Self::shadow) | off |
/// | [`and`](Self::and) locks another key, too | one key |
///
/// | the lock | default |
/// | --- | --- |
/// | [`ttl`](Self::ttl) | 30 s |
/// | [`renew`](Self::renew) | on, as long as the handler runs |
/// | [`max_hold`](Self::max_hold) | no limit |
/// | [`acquire_timeout`](Self::acquire_timeout) | 250 ms, then 503 |
/// | [`release_timeout`](Self::release_timeout) | 250 ms, then in the background |
/// | [`release_at`](Self::release_at) | before the head of the response |
/// | [`on_disconnect`](Self::on_disconnect) | the handler runs to its end |
/// | [`on_outage`](Self::on_outage) | 503 |
///
/// | duplicates | default |
/// | --- | --- |
/// | [`wait`](Self::wait) | none; duplicates are refused at once |
/// | [`cooldown`](Self::cooldown), [`min_interval`](Self::min_interval), [`cooldown_with`](Self::cooldown_with) | none; set one |
/// | [`refusals`](Self::refusals), [`on_reject`](Self::on_reject) | problem+json |
/// | [`problem_types`](Self::problem_types) | `urn:lockkit:problem:` |
/// | [`documentation`](Self::documentation) | none |
/// | [`retry_hint`](Self::retry_hint) | 1 s |
/// | `replay` (feature `replay`): the first answer instead of a refusal | off |
///
/// | operations | default |
/// | --- | --- |
/// | [`name`](Self::name) in log lines and metrics | `lock` |
/// | [`in_flight`](Self::in_flight), for the shutdown | |
/// | [`checked`](Self::checked), for settings out of bounds | an error in the log, and 500 |
///
/// `K` says which part of a request the key is made from: its head, or also its body. The constructor
/// determines it.
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
    // Not `new`: then the compiler answers `LockLayer::new` with the names of the constructors.
    pub(crate) fn with_key(locks: LockManager, key: K) -> Self {
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
        // This function cannot fail, but it logs the error before the first request arrives.
        let _ = self.policy.invalid_settings();
        LockService::around(inner, Arc::clone(&self.policy), self.key.clone())
    }
}

impl<K> fmt::Debug for LockLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockLayer")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
