//! The keeper: one thread that renews and releases for a whole manager.
//!
//! It has a runtime and a link to the store of its own, so an application runtime that is starved,
//! or has ended, costs no lease. It is also the kit's only timer: a lock works in any runtime, with
//! timers or without, and under a paused test clock.

mod errand;
mod jobs;
mod schedule;
mod thread;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;

use crate::active::Hold;
use crate::base::clock::{Clock, Moment};
use crate::base::sync::{WakerSet, lock, wake_all};
use crate::store::{BoxFuture, Store};

use errand::Errands;
pub(crate) use errand::{Errand, Start};
pub(crate) use jobs::Job;
use schedule::Schedule;

/// The side of the keeper that everybody else sees.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) clock: Clock,
    /// How long one operation of the keeper may go unanswered.
    operation_timeout: Duration,
    state: Mutex<State>,
    /// Rung when the thread has to look before it planned to.
    bell: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    schedule: Schedule,
    guards: usize,
    jobs: Vec<Job>,
    errands: Errands,
    /// Jobs accepted and not finished, the ones in `jobs` and `errands` included.
    open_jobs: usize,
    /// When the thread will look again by itself.
    planned: Moment,
    /// No manager, guard or handle is left: finish the jobs and end.
    closing: bool,
    /// Who waits for everything to be given back.
    draining: WakerSet,
}

/// What a keeper still has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// Guards that have not ended, those of lost leases included.
    pub(crate) guards: usize,
    /// Releases accepted and not finished.
    pub(crate) jobs: usize,
}

impl Load {
    const NONE: Load = Load { guards: 0, jobs: 0 };
}

impl Keeper {
    pub(crate) fn new(clock: Clock, operation_timeout: Duration) -> Arc<Self> {
        let bell = Arc::new(Notify::new());
        #[cfg(feature = "test-util")]
        if let Clock::Manual(clock) = &clock {
            clock.ring_on_change(&bell);
        }
        Arc::new(Self {
            clock,
            operation_timeout,
            state: Mutex::new(State {
                schedule: Schedule::default(),
                guards: 0,
                jobs: Vec::new(),
                errands: Errands::default(),
                open_jobs: 0,
                planned: Moment::FAR,
                closing: false,
                draining: WakerSet::default(),
            }),
            bell,
        })
    }

    /// Starts the thread. `background` is what the store does there on its own.
    pub(crate) fn start(
        self: &Arc<Self>,
        store: Arc<dyn Store>,
        background: BoxFuture<'static, ()>,
    ) -> io::Result<()> {
        thread::start(Arc::clone(self), store, background)
    }

    /// Puts a hold on the schedule, before its lock is asked for.
    pub(crate) fn arm(&self, hold: &Arc<Hold>) {
        self.look_in_time(lock(&self.state), hold);
    }

    /// The hold's lease changed: sees to it that the thread looks in time.
    pub(crate) fn rearm(&self, hold: &Arc<Hold>) {
        self.look_in_time(lock(&self.state), hold);
    }

    /// Only ever earlier: a look that comes too early finds nothing to do, and plans the next.
    fn look_in_time(&self, mut state: MutexGuard<'_, State>, hold: &Arc<Hold>) {
        // Under the schedule's lock, so that whoever closed the lease in between is seen.
        if let Some(due) = hold.due()
            && due < hold.scheduled()
        {
            state.schedule.set_hold(hold, due);
            self.plan(state, due);
        }
    }

    /// The hold's lease is closed.
    pub(crate) fn disarm(&self, hold: &Arc<Hold>) {
        lock(&self.state).schedule.remove_hold(hold);
    }

    /// There is one more guard.
    pub(crate) fn guard_made(&self) {
        lock(&self.state).guards += 1;
    }

    /// A guard has ended, and its release is done or submitted.
    pub(crate) fn guard_ended(&self) {
        let mut state = lock(&self.state);
        state.guards -= 1;
        let waiting = state.idle_waiters();
        drop(state);
        wake_all(waiting);
    }

    pub(crate) fn submit(&self, job: Job) {
        let mut state = lock(&self.state);
        state.jobs.push(job);
        state.open_jobs += 1;
        drop(state);
        self.bell.notify_one();
    }

    /// Resolves at `at`, in any runtime or none.
    pub(crate) fn timer(self: &Arc<Self>, at: Moment) -> Timer {
        Timer {
            keeper: Arc::clone(self),
            at,
            id: None,
        }
    }

    /// Wakes once, at `at` or soon after.
    pub(crate) fn wake_at(&self, at: Moment, waker: &Waker) {
        let mut state = lock(&self.state);
        state.schedule.add_timer(at, &mut None, waker);
        self.plan(state, at);
    }

    pub(crate) fn load(&self) -> Load {
        lock(&self.state).load()
    }

    /// Resolves when there is no guard and no open job.
    pub(crate) fn idle(self: &Arc<Self>) -> Idle {
        Idle {
            keeper: Arc::clone(self),
            seat: None,
        }
    }

    /// The last user is gone. The thread finishes its jobs and ends by itself.
    pub(crate) fn close(&self) {
        lock(&self.state).closing = true;
        self.bell.notify_one();
    }

    fn plan(&self, mut state: MutexGuard<'_, State>, at: Moment) {
        let earlier = at < state.planned;
        if earlier {
            state.planned = at;
        }
        drop(state);
        if earlier {
            self.bell.notify_one();
        }
    }

    fn job_done(&self) {
        let mut state = lock(&self.state);
        state.open_jobs -= 1;
        let waiting = state.idle_waiters();
        let closing = state.closing;
        drop(state);
        wake_all(waiting);
        // This may have been what the thread waits for, to end.
        if closing {
            self.bell.notify_one();
        }
    }
}

impl State {
    fn load(&self) -> Load {
        Load {
            guards: self.guards,
            jobs: self.open_jobs,
        }
    }

    /// Whom to wake, if nothing is left to do.
    fn idle_waiters(&mut self) -> Vec<(u32, std::task::Waker)> {
        if self.load() == Load::NONE {
            self.draining.take()
        } else {
            Vec::new()
        }
    }
}

/// See [`Keeper::timer`].
#[derive(Debug)]
pub(crate) struct Timer {
    keeper: Arc<Keeper>,
    at: Moment,
    id: Option<u64>,
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.keeper.clock.now() >= this.at {
            return Poll::Ready(());
        }
        if this.at < Moment::FAR {
            let mut state = lock(&this.keeper.state);
            state
                .schedule
                .add_timer(this.at, &mut this.id, context.waker());
            this.keeper.plan(state, this.at);
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            lock(&self.keeper.state).schedule.remove_timer(self.at, id);
        }
    }
}

/// See [`Keeper::idle`].
#[derive(Debug)]
pub(crate) struct Idle {
    keeper: Arc<Keeper>,
    seat: Option<u32>,
}

impl Future for Idle {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = lock(&this.keeper.state);
        if state.load() == Load::NONE {
            return Poll::Ready(());
        }
        state.draining.register(&mut this.seat, context.waker());
        Poll::Pending
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        lock(&self.keeper.state).draining.remove(self.seat);
    }
}
