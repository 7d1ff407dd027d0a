//! Settings of the lock itself.

use std::time::Duration;

use lock_core::Renew;

use super::LockLayer;
use crate::options::{Disconnect, Outage, ReleaseAt};

/// How the lock is acquired, held and released.
impl<K> LockLayer<K> {
    /// Sets the time that a lock outlives its last renewal.
    ///
    /// If a process is killed in the middle of a request, its key stays locked for this time. The
    /// layer renews the lock while the handler runs, however long that takes.
    ///
    /// It must be between 10 ms and 24 h, and at most the manager's
    /// [`max_ttl`](lock_core::ManagerBuilder::max_ttl). Other values are [`Invalid`](Self::checked).
    ///
    /// Default: 30 s.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with(|policy| policy.ttl = ttl)
    }

    /// Decides whether the layer renews the lock while the handler runs.
    ///
    /// With [`Renew::Off`], a handler that takes longer than the [ttl](Self::ttl) runs on without its
    /// lock, at the same time as the next request. This suits handlers that check their fencing token.
    ///
    /// Default: on.
    pub fn renew(self, renew: Renew) -> Self {
        self.with(|policy| policy.renew = renew)
    }

    /// Sets the longest time that one request may hold its lock.
    ///
    /// After that time the lock is lost: the layer stops renewing it, and it is free after one
    /// [ttl](Self::ttl) at most. The handler runs on, as after any loss, and its
    /// [`LockContext`](crate::LockContext) reports the loss. Zero is [`Invalid`](Self::checked).
    ///
    /// Default: no limit, because the limit ends the lock and not the handler. A handler that is only
    /// slow would run at the same time as the next request of its user. On the other hand, a handler
    /// that never ends blocks its user until the process ends. **Give every locked route a timeout
    /// that ends the handler**, inside of the lock layer. Set `max_hold` somewhat above it, for
    /// handlers that no timeout can end:
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use {axum::{Router, routing::post}, lock_tower::LockLayer};
    /// # let locks = lock_core::LockManager::in_memory();
    /// # async fn create_order() {}
    /// # fn timeout(_: Duration) -> tower::layer::util::Identity { tower::layer::util::Identity::new() }
    /// use std::time::Duration;
    ///
    /// let layer = LockLayer::template(locks, "submit:<header.x-user-id>:<method>:<route>")?
    ///     .cooldown(Duration::from_secs(2))
    ///     .max_hold(Duration::from_secs(40));
    /// let app: Router = Router::new()
    ///     .route("/orders", post(create_order))
    ///     .route_layer(timeout(Duration::from_secs(30))) // such as tower-http's TimeoutLayer
    ///     .route_layer(layer); // added last, so it is the outer one
    /// # let _ = app; Ok(()) }
    /// ```
    ///
    /// If a handler holds its lock for ten ttls (5 minutes by default), the layer logs a warning. It
    /// logs another one whenever the time has doubled. The line contains the layer's name and
    /// template, the method and the matched route. A layer logs at most one such line in 10 s, which
    /// counts those that were left out.
    pub fn max_hold(self, max_hold: Duration) -> Self {
        self.with(|policy| policy.max_hold = Some(max_hold))
    }

    /// Sets how long the store may take to answer before the request is refused with 503.
    ///
    /// [`on_outage`](Self::on_outage) can replace the refusal. A longer timeout tolerates slow moments
    /// of the store, but delays every request during an outage. Zero is [`Invalid`](Self::checked).
    ///
    /// Default: 250 ms.
    pub fn acquire_timeout(self, timeout: Duration) -> Self {
        self.with(|policy| policy.acquire_timeout = timeout)
    }

    /// Sets how long the response waits until the store confirms the release.
    ///
    /// A client that has read the response then finds the lock free. If the store does not answer in
    /// time, the layer sends the response and the release goes on in the background.
    ///
    /// Default: 250 ms.
    pub fn release_timeout(self, timeout: Duration) -> Self {
        self.with(|policy| policy.release_timeout = timeout)
    }

    /// Decides when the lock is released.
    ///
    /// Default: [`ReleaseAt::Head`], for handlers that have done their work when they respond.
    pub fn release_at(self, release_at: ReleaseAt) -> Self {
        self.with(|policy| policy.release_at = release_at)
    }

    /// Decides what happens to a handler whose client has disconnected.
    ///
    /// Default: [`Disconnect::RunToEnd`].
    pub fn on_disconnect(self, disconnect: Disconnect) -> Self {
        self.with(|policy| policy.disconnect = disconnect)
    }

    /// Decides what happens to requests while the store does not answer.
    ///
    /// Default: [`Outage::Reject`].
    pub fn on_outage(self, outage: Outage) -> Self {
        self.with(|policy| policy.outage = outage)
    }
}
