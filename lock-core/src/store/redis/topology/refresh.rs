//! When the servers are looked at: on the keeper's thread, for all callers at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::base::clock::{Clock, Moment};
use crate::base::machine::{sleep, timeout};
use crate::base::sync::lock;

/// The shortest time between two looks, however many callers ask for one.
const SPACING: Duration = Duration::from_millis(10);
/// For so long after trouble with a server looks are frequent, because another server may take its place at any
/// moment.
const ALERT: Duration = Duration::from_secs(10);
const ALERT_INTERVAL: Duration = Duration::from_millis(250);
/// A server that has not answered within this time counts as silent.
pub(super) const ANSWER: Duration = Duration::from_millis(250);
/// A configuration that no server reports is forgotten after this time, so that an older one may be believed.
/// Servers that were set up anew count their epochs anew.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Refresh {
    /// The number of the newest request for a look.
    wanted: AtomicU64,
    bell: Notify,
    /// All requests up to this one are fulfilled.
    done: watch::Sender<u64>,
    last_alarm: Mutex<Option<Moment>>,
}

impl Refresh {
    /// Asks for a look soon, because of trouble. Returns the number of the request.
    pub(super) fn ring(&self) -> u64 {
        self.alarm();
        self.wish()
    }

    /// Notes trouble that a look has found: from here on looks are frequent.
    pub(super) fn alarm(&self) {
        *lock(&self.last_alarm) = Some(Clock::System.now());
    }

    fn wish(&self) -> u64 {
        let wish = self.wanted.fetch_add(1, Ordering::SeqCst) + 1;
        self.bell.notify_one();
        wish
    }

    /// Asks for a look because of trouble, and waits until one that begins after this call has ended.
    pub(super) async fn look_again(&self) {
        self.fulfilled(self.ring()).await;
    }

    /// As [`Refresh::look_again`], without trouble.
    pub(super) async fn look(&self) {
        self.fulfilled(self.wish()).await;
    }

    async fn fulfilled(&self, wish: u64) {
        let mut done = self.done.subscribe();
        let _ = done.wait_for(|done| *done >= wish).await;
    }

    /// Begins a look, which fulfills all earlier requests. Its number goes to [`Refresh::end`].
    pub(super) fn begin(&self) -> u64 {
        self.wanted.load(Ordering::SeqCst)
    }

    pub(super) fn end(&self, begun: u64) {
        self.done.send_replace(begun);
    }

    /// Returns whether there was trouble a short while ago.
    pub(super) fn is_alert(&self) -> bool {
        lock(&self.last_alarm).is_some_and(|alarm| Clock::System.now().since(alarm) < ALERT)
    }

    /// Waits until the next look: at once on a request, else after `interval`, or less while there is trouble.
    pub(super) async fn rest(&self, interval: Duration) {
        sleep(SPACING).await;
        let interval = if self.is_alert() {
            interval.min(ALERT_INTERVAL)
        } else {
            interval
        };
        let _ = timeout(interval, self.bell.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_look_that_had_begun_before_is_not_the_one_that_was_asked_for() {
        let refresh = Refresh::default();
        let begun = refresh.begin();
        let mut again = tokio_test_pin(refresh.look_again());
        assert!(is_pending(&mut again).await);
        refresh.end(begun);
        assert!(is_pending(&mut again).await, "it began too early");
        let begun = refresh.begin();
        refresh.end(begun);
        again.await;
    }

    fn tokio_test_pin<F: Future>(future: F) -> std::pin::Pin<Box<F>> {
        Box::pin(future)
    }

    async fn is_pending(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        std::future::poll_fn(|context| {
            let pending = std::pin::Pin::new(&mut *future).poll(context).is_pending();
            std::task::Poll::Ready(pending)
        })
        .await
    }
}
