//! The requests of a layer that are under way, and waiting for their end.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::record::Record;

/// The requests of a layer that run under a lock: handlers, those whose clients have gone too, the
/// release after them, and with [`ReleaseAt::BodyEnd`](crate::ReleaseAt::BodyEnd) their answers'
/// bodies. From [`LockLayer::in_flight`](crate::LockLayer::in_flight), to be kept for the shutdown.
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
/// // … serve, until the server has ended in order …
/// let left = orders.drain(Duration::from_secs(30)).await; // handlers whose clients have gone
/// let released = locks.drain(Duration::from_secs(5)).await; // releases in the background
/// if left > 0 || !released.is_complete() { eprintln!("{left} left, {released:?}"); }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct InFlight(Arc<Shared>);

#[derive(Default)]
struct Shared {
    count: AtomicUsize,
    /// Rung by the last one.
    none_left: Notify,
}

impl InFlight {
    /// How many there are now.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }

    /// Waits until there are none, for `timeout` at most; answers how many are left.
    ///
    /// It stops no new ones: call it when the server accepts no more requests. The locks that were
    /// released in the background are [`LockManager::drain`](lock_core::LockManager::drain)'s, which
    /// comes after it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with time enabled.
    pub async fn drain(&self, patience: Duration) -> usize {
        let none_left = async {
            loop {
                let mut rung = pin!(self.0.none_left.notified());
                // Before the look at the count, so that no ring is missed in between.
                rung.as_mut().enable();
                if self.count() == 0 {
                    return;
                }
                rung.await;
            }
        };
        let _ = timeout(patience, none_left).await;
        self.count()
    }
}

impl InFlight {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// One more, for as long as the ticket lives.
    pub(crate) fn enter(&self, record: Record) -> Ticket {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        record.began();
        Ticket {
            among: self.clone(),
            record,
        }
    }
}

/// A place among the requests under way.
pub(crate) struct Ticket {
    among: InFlight,
    record: Record,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.record.ended();
        if self.among.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.among.0.none_left.notify_waiters();
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.count()).finish()
    }
}
