//! When to look where the servers are: on the keeper's thread, for everybody at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::base::clock::{Clock, Moment};
use crate::base::sync::lock;

/// However many ask for it: between two looks lies as long as it takes them to be of use.
const SPACING: Duration = Duration::from_millis(10);
/// So long after somebody found a server amiss it is looked at often, as its place may be taken at any
/// moment.
const ALERT: Duration = Duration::from_secs(10);
const ALERT_INTERVAL: Duration = Duration::from_millis(250);
/// A server that has not answered within this is one that does not answer.
pub(super) const ANSWER: Duration = Duration::from_millis(250);
/// A configuration that nothing speaks for any more is forgotten after this long, so that an older one
/// may be believed: servers that were set up anew count anew.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(5);

pub(super) struct Lookout {
    /// The number of the newest wish for a look.
    wanted: AtomicU64,
    bell: Notify,
    /// All wishes up to this one are fulfilled.
    done: watch::Sender<u64>,
    last_alarm: Mutex<Option<Moment>>,
}

impl Lookout {
    pub(super) fn new() -> Self {
        Self {
            wanted: AtomicU64::new(0),
            bell: Notify::new(),
            done: watch::Sender::new(0),
            last_alarm: Mutex::new(None),
        }
    }

    /// Something is amiss: look soon. Answers the number of the wish.
    pub(super) fn ring(&self) -> u64 {
        self.alarm();
        self.wish()
    }

    /// Something is amiss, as a look has found: from here on looks are frequent.
    pub(super) fn alarm(&self) {
        *lock(&self.last_alarm) = Some(Clock::System.now());
    }

    fn wish(&self) -> u64 {
        let wish = self.wanted.fetch_add(1, Ordering::SeqCst) + 1;
        self.bell.notify_one();
        wish
    }

    /// Something is amiss: until a look that begins after this call has ended.
    pub(super) async fn look_again(&self) {
        self.fulfilled(self.ring()).await;
    }

    /// As [`Lookout::look_again`], where nothing is amiss.
    pub(super) async fn look(&self) {
        self.fulfilled(self.wish()).await;
    }

    async fn fulfilled(&self, wish: u64) {
        let mut done = self.done.subscribe();
        let _ = done.wait_for(|done| *done >= wish).await;
    }

    /// The look that begins here fulfills what was wished for before: to be told to [`Lookout::end`].
    pub(super) fn begin(&self) -> u64 {
        self.wanted.load(Ordering::SeqCst)
    }

    pub(super) fn end(&self, begun: u64) {
        self.done.send_replace(begun);
    }

    /// Whether something was found amiss a short while ago.
    pub(super) fn is_alert(&self) -> bool {
        lock(&self.last_alarm).is_some_and(|alarm| Clock::System.now().since(alarm) < ALERT)
    }

    /// Until the next look: at once if somebody asks for one, else after `interval`, or less while
    /// something is amiss.
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
        let lookout = Lookout::new();
        let begun = lookout.begin();
        let mut again = tokio_test_pin(lookout.look_again());
        assert!(is_pending(&mut again).await);
        lookout.end(begun);
        assert!(is_pending(&mut again).await, "it began too early");
        let begun = lookout.begin();
        lookout.end(begun);
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
