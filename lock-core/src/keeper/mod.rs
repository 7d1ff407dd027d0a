//! The keeper: one thread that renews all leases of a manager and runs its background tasks.
//!
//! # Why a thread
//!
//! A renewal must not wait for an application runtime that is blocked, starved or gone. The thread has a
//! runtime and a connection to the store of its own, and it fires the kit's [timers](crate::timer). An
//! uncontended acquire and release do not wake it, because a lease is added to its schedule without a ring
//! unless the lease is due before the thread would look anyway.

mod schedule;
mod thread;

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;

use crate::active::ActiveLease;
use crate::base::BoxFuture;
use crate::base::sync::lock;
use crate::timer::Timers;

use schedule::Schedule;

/// Hears of leases from the keeper. Called on its thread, with no lock held.
pub(crate) trait LeaseListener: Send + Sync {
    /// The lease is lost.
    fn lost(&self, lease: &Arc<ActiveLease>);

    /// The question for this lease has no answer, and its time is over.
    fn overdue(&self, lease: &Arc<ActiveLease>);
}

/// The keeper as the other threads use it.
pub(crate) struct Keeper {
    pub(crate) timers: Arc<Timers>,
    /// The time after which an operation of the keeper counts as not answered.
    operation_timeout: Duration,
    state: Mutex<KeeperState>,
    /// Notified when less is left to do, if a task waits until nothing is.
    idle: Notify,
}

#[derive(Default)]
struct KeeperState {
    schedule: Schedule,
    guards: usize,
    /// Tasks for the thread to begin.
    tasks: Vec<BoxFuture<'static, ()>>,
    open_tasks: usize,
    /// No manager, guard or handle is left: the thread ends when no task is open.
    closing: bool,
    /// A task waits until nothing is left to do.
    draining: bool,
}

impl Keeper {
    pub(crate) fn new(timers: Arc<Timers>, operation_timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            timers,
            operation_timeout,
            state: Mutex::default(),
            idle: Notify::new(),
        })
    }

    /// Schedules the lease before its lock is asked for, and again whenever the lease has changed.
    pub(crate) fn arm(&self, lease: &Arc<ActiveLease>) {
        let mut state = lock(&self.state);
        // Under the schedule's lock, so that a lease that was closed in between stays out. Only ever earlier,
        // because a look that comes too early finds nothing to do and plans the next.
        if let Some(due) = lease.due()
            && due < lease.scheduled()
        {
            state.schedule.set(lease, due);
            drop(state);
            self.timers.plan(due);
        }
    }

    /// Takes a closed lease off the schedule.
    pub(crate) fn disarm(&self, lease: &Arc<ActiveLease>) {
        lock(&self.state).schedule.remove(lease);
    }

    /// Counts one more guard.
    pub(crate) fn guard_made(&self) {
        lock(&self.state).guards += 1;
    }

    /// Counts one guard less, because its release is done or submitted.
    pub(crate) fn guard_ended(&self) {
        let mut state = lock(&self.state);
        state.guards -= 1;
        self.less_to_do(state);
    }

    /// Counts a task that [`drain`](crate::LockManager::drain) and the end of the thread wait for.
    pub(crate) fn open_task(self: &Arc<Self>) -> OpenTask {
        lock(&self.state).open_tasks += 1;
        OpenTask(Arc::clone(self))
    }

    /// Runs a task on the thread. Nothing waits for it unless it owns an [`OpenTask`].
    pub(crate) fn run(&self, task: BoxFuture<'static, ()>) {
        lock(&self.state).tasks.push(task);
        self.timers.ring();
    }

    /// Counts the guards that have not ended, those of lost leases included, and the unfinished tasks.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.guards, state.open_tasks)
    }

    /// Resolves when there is no guard and no open task.
    pub(crate) async fn idle(&self) {
        lock(&self.state).draining = true;
        loop {
            let mut idle = pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.load() == (0, 0) {
                return;
            }
            idle.await;
        }
    }

    /// Ends the thread once its tasks are finished, because the last user is gone.
    pub(crate) fn close(&self) {
        lock(&self.state).closing = true;
        self.timers.ring();
    }

    fn less_to_do(&self, state: MutexGuard<'_, KeeperState>) {
        let (draining, closing) = (state.draining, state.closing);
        drop(state);
        if draining {
            self.idle.notify_waiters();
        }
        // The thread may have waited for this, to end.
        if closing {
            self.timers.ring();
        }
    }
}

/// A task that counts until this is dropped.
pub(crate) struct OpenTask(Arc<Keeper>);

impl Drop for OpenTask {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.open_tasks -= 1;
        self.0.less_to_do(state);
    }
}
