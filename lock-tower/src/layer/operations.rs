//! Settings and queries for the operation of a service.

use lock_core::Error;

use super::LockLayer;
use crate::telemetry::{InFlight, Telemetry};

/// What the operation of a service needs.
impl<K> LockLayer<K> {
    /// Checks that all settings are within their bounds, and returns the layer.
    ///
    /// Call it last, at the start of a service. The bounds depend on the manager, because its servers
    /// limit the [`max_ttl`](lock_core::ManagerBuilder::max_ttl). The layer therefore checks all
    /// settings together, and shortens none of them.
    ///
    /// Without this call, the layer checks its settings when it is put around a service. If one is out
    /// of bounds, the layer logs an error, [`probe`](crate::probe) finds it, and every request is
    /// refused with 500 `lock_invalid`.
    ///
    /// # Errors
    ///
    /// * [`Invalid`](lock_core::ErrorKind::Invalid): a setting is out of bounds. The message names the
    ///   setting and its bound.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    /// use lock_tower::LockLayer;
    ///
    /// let layer = LockLayer::template(locks, "submit:<header.x-user-id>")?
    ///     .cooldown(Duration::from_secs(2))
    ///     .checked()?;
    /// let error = layer.ttl(Duration::from_millis(1)).checked().unwrap_err();
    /// assert_eq!(error.kind(), lock_core::ErrorKind::Invalid);
    /// # Ok(()) }
    /// ```
    pub fn checked(self) -> Result<Self, Error> {
        self.policy.check()?;
        Ok(self)
    }

    /// Sets the layer's name in log lines, spans and metrics.
    ///
    /// The name is `'static`, so no request can choose it. Default: `lock`.
    ///
    /// The span `lock.request` (level `debug`, with `layer`) covers the acquire and the handler.
    /// lock-core's spans `lock.acquire`, `lock.hold` and `lock.release` are inside of it. With the
    /// feature `metrics`, the layer records these metrics, each with the label `layer`:
    ///
    /// | metric | kind | more labels |
    /// | --- | --- | --- |
    /// | `lock_layer_requests_total` | counter | `outcome`: `granted`, `fallback`, `replayed`, or the code of the [`Rejection`](crate::Rejection). `action`: `locked`, `replayed`, `refused`, or `passed` for a request that runs without a lock (shadow mode, a missing key, an outage) |
    /// | `lock_layer_in_flight` | gauge: the requests that [`InFlight`] counts | |
    /// | `lock_layer_acquire_seconds` | histogram: how long granted requests waited for their lock | |
    /// | `lock_layer_hold_seconds` | histogram: how long requests held their lock | |
    /// | `lock_layer_releases_total` | counter | `outcome`: `released`, `background`, or the code of the error, such as `lock_lost` |
    /// | `lock_layer_records_total` (feature `replay`) | counter | `outcome`: `answer` or `done` for what the store keeps of a request, `background` if it has not answered yet, `unacknowledged` if too few replicas have, `lost` if another owner had the key, `failed`; in a database `answer`, `done`, or `unknown` if it does not tell what became of a COMMIT |
    /// | `lock_layer_record_bytes` (feature `replay`) | histogram: the size of recorded answers | |
    /// | `lock_layer_disconnects_total` | counter: requests that were dropped while their handler ran | |
    ///
    /// With `Replay::in_database` (feature `once`) a request acquires its lock before the layer looks for its record, so each
    /// request that is replayed or refused by the database counts as `granted`, too.
    ///
    /// No label, span or log line contains a key, a path, a header or a user. The number of series is
    /// the number of names times that of the words above.
    pub fn name(self, name: &'static str) -> Self {
        self.with(|policy| policy.telemetry = Telemetry::new(name))
    }

    /// Returns a counter of the requests in flight, which a shutdown can wait for.
    ///
    /// A server that shuts down gracefully waits for its clients, but not for handlers whose clients
    /// have disconnected. Clones of a layer, and the services made from them, share one counter.
    #[must_use]
    pub fn in_flight(&self) -> InFlight {
        self.policy.in_flight.clone()
    }
}
