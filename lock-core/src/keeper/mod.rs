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

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::active::ActiveLease;
use crate::base::BoxFuture;
use crate::base::sync::{WakerSet, lock, wake_all};
use crate::store::Store;
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
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) timers: Arc<Timers>,
    /// The time after which an operation of the keeper counts as not answered.
    operation_timeout: Duration,
    state: Mutex<KeeperState>,
}

struct KeeperState {
    schedule: Schedule,
    guards: usize,
    /// Tasks for the thread to begin.
    tasks: Vec<BoxFuture<'static, ()>>,
    open_tasks: usize,
    /// No manager, guard or handle is left: the thread ends when no task is open.
    closing: bool,
    /// Tasks that wait until nothing is left to do.
    draining: WakerSet,
}

/// The work that a keeper still has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// Guards that have not ended, those of lost leases included.
    pub(crate) guards: usize,
    /// Tasks that are not finished.
    pub(crate) tasks: usize,
}

impl Load {
    const NONE: Load = Load {
        guards: 0,
        tasks: 0,
    };
}

impl Keeper {
    pub(crate) fn new(timers: Arc<Timers>, operation_timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            timers,
            operation_timeout,
            state: Mutex::new(KeeperState {
                schedule: Schedule::default(),
                guards: 0,
                tasks: Vec::new(),
                open_tasks: 0,
                closing: false,
                draining: WakerSet::default(),
            }),
        })
    }

    /// Starts the thread. `background` is the store's own work there.
    pub(crate) fn start(
        self: &Arc<Self>,
        store: Arc<dyn Store>,
        background: BoxFuture<'static, ()>,
        listener: Box<dyn LeaseListener>,
    ) -> io::Result<()> {
        thread::start(Arc::clone(self), store, background, listener)
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

    pub(crate) fn load(&self) -> Load {
        lock(&self.state).load()
    }

    /// Resolves when there is no guard and no open task.
    pub(crate) fn idle(self: &Arc<Self>) -> Idle {
        Idle {
            keeper: Arc::clone(self),
            waker_id: None,
        }
    }

    /// Ends the thread once its tasks are finished, because the last user is gone.
    pub(crate) fn close(&self) {
        lock(&self.state).closing = true;
        self.timers.ring();
    }

    fn less_to_do(&self, mut state: MutexGuard<'_, KeeperState>) {
        let waiting = state.idle_waiters();
        let closing = state.closing;
        drop(state);
        wake_all(waiting);
        // The thread may have waited for this, to end.
        if closing {
            self.timers.ring();
        }
    }
}

impl KeeperState {
    fn load(&self) -> Load {
        Load {
            guards: self.guards,
            tasks: self.open_tasks,
        }
    }

    /// The tasks to wake if nothing is left to do.
    fn idle_waiters(&mut self) -> Vec<(u32, Waker)> {
        if self.load() == Load::NONE {
            self.draining.take()
        } else {
            Vec::new()
        }
    }
}

impl std::fmt::Debug for KeeperState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeeperState")
            .field("schedule", &self.schedule)
            .field("load", &self.load())
            .finish_non_exhaustive()
    }
}

/// A task that counts until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenTask(Arc<Keeper>);

impl Drop for OpenTask {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.open_tasks -= 1;
        self.0.less_to_do(state);
    }
}

/// See [`Keeper::idle`].
#[derive(Debug)]
pub(crate) struct Idle {
    keeper: Arc<Keeper>,
    waker_id: Option<u32>,
}

impl Future for Idle {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = lock(&this.keeper.state);
        if state.load() == Load::NONE {
            return Poll::Ready(());
        }
        state.draining.register(&mut this.waker_id, context.waker());
        Poll::Pending
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        lock(&self.keeper.state).draining.remove(self.waker_id);
    }
}
