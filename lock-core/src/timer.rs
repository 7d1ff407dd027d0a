//! Timers that need no runtime, and the bell of the thread that fires them.
//!
//! The keeper's thread is the only timer of the kit: a lock works in any runtime, with timers or without,
//! and under a clock that a test moves.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;

use crate::base::clock::{Clock, Moment};
use crate::base::machine;
use crate::base::sync::lock;

/// The tasks to wake, by time.
#[derive(Debug)]
pub(crate) struct Timers {
    clock: Clock,
    waiting: Mutex<Waiting>,
    /// The time of the thread's next look, as nanoseconds of the clock; far while it looks.
    planned: AtomicU64,
    /// Rung when the thread has to look before it planned to.
    bell: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Waiting {
    by_time: BTreeMap<(Moment, u64), Waker>,
    last_id: u64,
}

impl Timers {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        let bell = Arc::new(Notify::new());
        #[cfg(feature = "test-util")]
        if let Clock::Manual(clock) = &clock {
            clock.ring_on_change(&bell);
        }
        Arc::new(Self {
            clock,
            waiting: Mutex::default(),
            planned: AtomicU64::new(Moment::FAR.0),
            bell,
        })
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Resolves at `at`, in any runtime or none.
    pub(crate) fn at(self: &Arc<Self>, at: Moment) -> Timer {
        Timer {
            timers: Arc::clone(self),
            at,
            id: None,
        }
    }

    /// Awaits `future` until `at`. Answers `None` if the time is over first.
    pub(crate) async fn before<F: Future>(
        self: &Arc<Self>,
        at: Moment,
        future: F,
    ) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut timer = pin!(self.at(at));
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => timer.as_mut().poll(context).map(|()| None),
        })
        .await
    }

    /// Wakes `waker` once, at `at` or soon after.
    pub(crate) fn wake_at(&self, at: Moment, waker: &Waker) {
        self.register(at, &mut None, waker);
    }

    /// Has the thread look at `at` at the latest. Call it after the work that is due then can be found.
    pub(crate) fn plan(&self, at: Moment) {
        if at.0 < self.planned.fetch_min(at.0, Ordering::SeqCst) {
            self.ring();
        }
    }

    /// Has the thread look now.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    /// The thread looks: takes out the wakers that are due. Work that is added from here on rings the bell.
    pub(crate) fn take_due(&self, now: Moment) -> Vec<Waker> {
        self.planned.store(Moment::FAR.0, Ordering::SeqCst);
        let mut waiting = lock(&self.waiting);
        let mut due = Vec::new();
        while let Some(entry) = waiting.by_time.first_entry()
            && entry.key().0 <= now
        {
            due.push(entry.remove());
        }
        due
    }

    /// The thread sleeps until a timer or `other` is due, or the bell rings.
    pub(crate) async fn sleep(&self, other: Moment) {
        let timer = lock(&self.waiting)
            .by_time
            .first_key_value()
            .map(|((at, _), _)| *at);
        let next = timer.map_or(other, |at| at.min(other));
        self.planned.store(next.0, Ordering::SeqCst);
        let bell = self.bell.notified();
        match self.clock {
            Clock::System if next < Moment::FAR => {
                let left = next.since(self.now());
                // Short naps, because the runtime's timers stand still while the machine sleeps.
                let nap = left.min(Duration::from_secs(1)) + Duration::from_micros(200);
                let _ = machine::timeout(nap, bell).await;
            }
            // A clock that a test moves rings the bell when it is moved.
            _ => bell.await,
        }
    }

    /// Adds the timer, or gives it another waker.
    fn register(&self, at: Moment, id: &mut Option<u64>, waker: &Waker) {
        let mut waiting = lock(&self.waiting);
        let id = *id.get_or_insert_with(|| {
            waiting.last_id += 1;
            waiting.last_id
        });
        waiting
            .by_time
            .entry((at, id))
            .and_modify(|stored| stored.clone_from(waker))
            .or_insert_with(|| waker.clone());
        drop(waiting);
        self.plan(at);
    }
}

/// See [`Timers::at`].
#[derive(Debug)]
pub(crate) struct Timer {
    timers: Arc<Timers>,
    at: Moment,
    id: Option<u64>,
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.timers.now() >= this.at {
            return Poll::Ready(());
        }
        if this.at < Moment::FAR {
            this.timers.register(this.at, &mut this.id, context.waker());
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            lock(&self.timers.waiting).by_time.remove(&(self.at, id));
        }
    }
}
