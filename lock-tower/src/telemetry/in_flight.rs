//! Counts the requests of a layer that are in flight, and waits for their end.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::Telemetry;

/// The requests that a layer has let to its handlers.
///
/// A request counts from the grant of its lock until its handler has ended and the release was
/// answered. A request that [runs without a lock](crate::LockContext#requests-without-a-lock) counts while its handler
/// runs. A handler whose client has disconnected counts, too. With
/// [`ReleaseAt::BodyEnd`](crate::ReleaseAt::BodyEnd) the request counts until the end of the
/// response's body.
///
/// [`LockLayer::in_flight`](crate::LockLayer::in_flight) returns it. Keep it for the shutdown.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_tower::TemplateError> {
/// # let locks = lock_core::LockManager::in_memory();
/// use std::time::Duration;
/// use lock_tower::LockLayer;
///
/// let layer = LockLayer::template(locks.clone(), "submit:<header.x-user-id>")?
///     .cooldown(Duration::from_secs(2));
/// let orders = layer.in_flight();
/// // … serve, until the server has shut down gracefully …
/// let left = orders.drain(Duration::from_secs(30)).await; // handlers whose clients have disconnected
/// let released = locks.drain(Duration::from_secs(5)).await; // releases in the background
/// if left > 0 || !released.is_complete() { eprintln!("{left} left, {released:?}"); }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct InFlight(Arc<Counter>);

#[derive(Default)]
struct Counter {
    count: AtomicUsize,
    /// Notified when the count becomes zero.
    none_left: Notify,
}

impl InFlight {
    /// Returns the number of requests in flight.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }

    /// Waits until no request is in flight, at most for `timeout`, and returns how many are left.
    ///
    /// It does not stop new requests, so call it when the server no longer accepts any. Releases in
    /// the background are not counted. [`LockManager::drain`](lock_core::LockManager::drain) waits
    /// for them, and must be called after this method.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Panics
    ///
    /// The future panics outside of a tokio runtime with time enabled.
    pub async fn drain(&self, timeout: Duration) -> usize {
        let none_left = async {
            loop {
                let mut notified = pin!(self.0.none_left.notified());
                // Enabled before the count is read, so that no notification is missed in between.
                notified.as_mut().enable();
                if self.count() == 0 {
                    return;
                }
                notified.await;
            }
        };
        let _ = tokio::time::timeout(timeout, none_left).await;
        self.count()
    }
}

impl InFlight {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Counts one more request until the value is dropped.
    pub(crate) fn enter(&self, telemetry: Telemetry) -> OpenRequest {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        telemetry.began();
        OpenRequest {
            in_flight: self.clone(),
            telemetry,
        }
    }
}

/// Represents one request in flight.
pub(crate) struct OpenRequest {
    in_flight: InFlight,
    telemetry: Telemetry,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.telemetry.ended();
        let counter = &self.in_flight.0;
        if counter.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            counter.none_left.notify_waiters();
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.count()).finish()
    }
}
