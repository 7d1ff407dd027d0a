//! A release that nobody waits for, sent by the runtime that it happens in.
//!
//! That one's connection is at hand, and no thread has to be woken for it. It is not even sent if the next
//! task wants the lock at once, and steps over what is there. But a runtime may be blocked, or end. So the
//! keeper takes over what the runtime drops, and what has not come to an end within a moment.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::runtime::Handle;

use super::{Job, Keeper};
use crate::base::clock::Moment;
use crate::base::sync::lock;
use crate::store::{Lane, Outcome};

/// Longer than most answers take, so that few releases are sent twice; not long for who wants the lock.
const PATIENCE: Duration = Duration::from_millis(100);

/// One release on its way.
pub(crate) struct Errand {
    keeper: Arc<Keeper>,
    /// Nothing, once it is done, or the keeper does it.
    job: Mutex<Option<Job>>,
}

/// When an errand sets out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Before the call returns, as far as that needs no waiting.
    Now,
    /// Behind the tasks that are ready by now, unless one of them steps over it.
    Soon,
}

impl Keeper {
    /// As [`submit`](Keeper::submit), but somebody else may do the job within a moment.
    pub(crate) fn entrust(self: &Arc<Self>, job: Job) -> Arc<Errand> {
        let errand = Arc::new(Errand {
            keeper: Arc::clone(self),
            job: Mutex::new(Some(job)),
        });
        let overdue = self.clock.now() + PATIENCE;
        let mut state = lock(&self.state);
        state.open_jobs += 1;
        state.errands.add(overdue, Arc::clone(&errand));
        self.plan(state, overdue);
        errand
    }
}

impl Errand {
    /// The calling task's runtime does it, by `lane`.
    pub(crate) fn go(self: Arc<Self>, lane: Lane, start: Start) {
        let Ok(runtime) = Handle::try_current() else {
            return self.hurry();
        };
        let going = Carrier(Some(self)).carry(lane);
        match start {
            Start::Soon => drop(runtime.spawn(going)),
            Start::Now => {
                let mut going = Box::pin(going);
                let mut nobody = Context::from_waker(Waker::noop());
                if going.as_mut().poll(&mut nobody).is_pending() {
                    runtime.spawn(going);
                }
            }
        }
    }

    /// Somebody has been granted the key since: there is nothing left to give back.
    pub(crate) fn is_superseded(&self) {
        let job = lock(&self.job).take();
        if job.is_some() {
            // The last reference to the manager may go with the job: before it counts as done.
            drop(job);
            self.keeper.job_done();
        }
    }

    /// Leaves it to the keeper at once.
    pub(crate) fn hurry(&self) {
        let job = lock(&self.job).take();
        if let Some(job) = job {
            lock(&self.keeper.state).jobs.push(job);
            self.keeper.bell.notify_one();
        }
    }

    fn is_done(&self) {
        let job = lock(&self.job).take();
        if let Some(job) = job {
            job.end(&self.keeper);
        }
    }
}

/// Whoever has the errand in hand. Dropped on the way, it is the keeper's.
struct Carrier(Option<Arc<Errand>>);

impl Carrier {
    async fn carry(mut self, lane: Lane) {
        let Some(errand) = &self.0 else {
            return;
        };
        let ending = lock(&errand.job).as_ref().and_then(Job::ending);
        let Some((core, operation)) = ending else {
            return;
        };
        if !core.local.gives_back(&operation, lane) {
            // Somebody is stepping over it, or has done so. If that fails, the errand is remembered.
            self.0 = None;
            return;
        }
        // Anything else is left to the keeper.
        if let Outcome::Released(_) = core.store.execute(operation, lane).await {
            errand.is_done();
        }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        if let Some(errand) = &self.0 {
            errand.hurry();
        }
    }
}

/// What others do, by when the keeper looks after it; what is done by then included.
#[derive(Default)]
pub(super) struct Errands(VecDeque<(Moment, Arc<Errand>)>);

impl Errands {
    /// All have the same patience: who comes later is due later.
    fn add(&mut self, due: Moment, errand: Arc<Errand>) {
        self.0.push_back((due, errand));
    }

    pub(super) fn next(&self) -> Moment {
        self.0.front().map_or(Moment::FAR, |(due, _)| *due)
    }

    pub(super) fn take_overdue(&mut self, now: Moment) -> Vec<Job> {
        let mut overdue = Vec::new();
        while self.next() <= now
            && let Some((_, errand)) = self.0.pop_front()
        {
            overdue.extend(lock(&errand.job).take());
        }
        overdue
    }
}

impl std::fmt::Debug for Errands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Errands({})", self.0.len())
    }
}
