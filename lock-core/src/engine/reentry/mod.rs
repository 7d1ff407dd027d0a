//! Re-entry by scope: a call inside a body that runs under a lock enters that lock again.
//!
//! # Why by scope
//!
//! A thread runs many tasks and a task many branches, so neither tells what is inside. A body is inside its
//! lock while it is polled, and so is all that it polls. A level admits one nested body at a time, so two
//! branches of a `join!` exclude each other. The level stands in a thread-local for the length of a poll,
//! with the id of the task, so that other tasks that a body polls are not inside.
//!
//! A nested body may lengthen the ttl of the lease but never shorten it, because the store would cut the
//! lease, and the deadline that was counted from the longer ttl would be wrong.

mod entry;

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::active::{ActiveLease, Turn};
use crate::base::error::Error;
use crate::base::machine::{self, TaskId};
use crate::base::options::Wait;
use crate::engine::Engine;
use crate::engine::spec::LockSpec;

pub(crate) use self::entry::Entry;

/// The surroundings of a body: the lock that it is inside of.
pub(crate) struct Level {
    engine: Arc<Engine>,
    lease: Arc<ActiveLease>,
    /// `None`: directly under the lease, whose own turn counts for all such levels.
    turn: Option<Turn>,
    around: Option<Arc<Level>>,
}

impl Level {
    /// Opens a level inside those of the calling task.
    pub(crate) fn open(
        engine: &Arc<Engine>,
        lease: &Arc<ActiveLease>,
        turn: Option<&Turn>,
    ) -> Arc<Self> {
        Arc::new(Self {
            engine: Arc::clone(engine),
            lease: Arc::clone(lease),
            turn: turn.cloned(),
            around: innermost(),
        })
    }

    /// Enters this level until the value is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Restored {
        let here = Here {
            level: Arc::clone(self),
            task: machine::task_id(),
        };
        let outside = INNERMOST.try_with(|innermost| innermost.replace(Some(here)));
        Restored(outside.ok())
    }

    /// Finds the nearest level of a lock that has one of the keys, from the calling task's innermost outwards.
    fn nearest(spec: &LockSpec) -> Option<Arc<Self>> {
        Self::find(spec, |lease| spec.keys().any(|key| lease.covers(key)))
    }

    fn find(spec: &LockSpec, is_it: impl Fn(&ActiveLease) -> bool) -> Option<Arc<Self>> {
        let mut level = innermost();
        while let Some(here) = level {
            if Arc::ptr_eq(&here.engine, &spec.engine) && is_it(&here.lease) {
                return Some(here);
            }
            level = here.around.clone();
        }
        None
    }

    /// Returns whether a body of this kind may run inside the lock. An outer share admits only a share that may stand
    /// beside it.
    fn admits(&self, spec: &LockSpec) -> bool {
        match (self.lease.token.share(), spec.share) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(outer), Some(inner)) => outer.admits_beside(inner),
        }
    }

    fn turn(&self) -> Turn {
        self.turn.clone().unwrap_or_else(|| self.lease.turn())
    }
}

/// Refuses a wait that could never end.
///
/// # Errors
///
/// `Invalid` if the calling task is inside the lock that is wanted.
pub(crate) fn check_not_inside(spec: &LockSpec, advice: &'static str) -> Result<(), Error> {
    match Level::nearest(spec) {
        Some(level) if level.engine.is_valid(&level.lease) => {
            Err(Error::invalid(advice).with_key(&spec.key))
        }
        _ => Ok(()),
    }
}

/// Refuses a wait without an end for several keys inside of another lock, because two such callers could wait for each
/// other. Keys are acquired in an order within one request, and not across requests.
///
/// # Errors
///
/// `Invalid` if the calling task is inside a lock of the same manager.
pub(crate) fn check_ends_inside(spec: &LockSpec) -> Result<(), Error> {
    if spec.others.is_empty() || spec.wait != Wait::Forever {
        return Ok(());
    }
    match Level::find(spec, |lease| spec.engine.is_valid(lease)) {
        Some(_) => Err(Error::invalid(
            "a lock of several keys cannot wait for ever inside another lock, because two such callers would wait for \
             each other; give it a wait that ends, or lock all keys in one request",
        )
        .with_key(&spec.key)),
        None => Ok(()),
    }
}

/// The level of the poll that is under way on this thread.
struct Here {
    level: Arc<Level>,
    /// A body may poll other tasks too, those of a `LocalSet` for example. They are not inside.
    task: Option<TaskId>,
}

thread_local! {
    static INNERMOST: RefCell<Option<Here>> = const { RefCell::new(None) };
}

fn innermost() -> Option<Arc<Level>> {
    let level = INNERMOST.try_with(|innermost| {
        let innermost = innermost.borrow();
        let here = innermost.as_ref()?;
        (here.task == machine::task_id()).then(|| Arc::clone(&here.level))
    });
    level.ok().flatten()
}

/// Restores the level that was there before, however the poll ends.
#[must_use = "what was there before comes back when this is dropped"]
pub(crate) struct Restored(Option<Option<Here>>);

impl Drop for Restored {
    fn drop(&mut self) {
        if let Some(outside) = self.0.take() {
            // Taken out of the cell first, because the last reference to a manager may go with it.
            drop(INNERMOST.try_with(|innermost| innermost.replace(outside)));
        }
    }
}

pin_project! {
    /// The future of [`LockHandle::scope`](crate::LockHandle::scope).
    #[must_use = "futures do nothing unless polled"]
    pub struct LockScope<F> {
        #[pin]
        future: F,
        engine: Arc<Engine>,
        lease: Arc<ActiveLease>,
        turn: Option<Turn>,
        level: Option<Arc<Level>>,
    }
}

impl<F> LockScope<F> {
    pub(crate) fn new(
        future: F,
        engine: &Arc<Engine>,
        lease: &Arc<ActiveLease>,
        turn: Option<&Turn>,
    ) -> Self {
        Self {
            future,
            engine: Arc::clone(engine),
            lease: Arc::clone(lease),
            turn: turn.cloned(),
            level: None,
        }
    }
}

impl<F: Future> Future for LockScope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        // Opened by the first poll, because the surroundings are those of the run and not of the call that
        // made the future.
        let level = this
            .level
            .get_or_insert_with(|| Level::open(this.engine, this.lease, this.turn.as_ref()));
        let _inside = level.enter();
        this.future.poll(context)
    }
}

impl<F> fmt::Debug for LockScope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockScope")
    }
}
