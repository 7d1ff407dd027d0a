//! Re-entry by scope: a call inside a body that runs under a lock enters that lock again.
//!
//! Not by thread and not by task: a body is inside its lock for as long as it polls, and so is what
//! it polls. Two branches of a `join!` are both inside, so they must exclude each other: a level
//! admits one body at a time.

mod entry;

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::task;

use crate::active::{ActiveLease, Turn};
use crate::base::error::Error;
use crate::engine::Engine;
use crate::engine::spec::LockSpec;

pub(crate) use self::entry::Entry;

/// What a body is inside of.
pub(crate) struct Level {
    engine: Arc<Engine>,
    lease: Arc<ActiveLease>,
    /// `None`: right under the hold, whose own turn counts for all such levels.
    turn: Option<Turn>,
    around: Option<Arc<Level>>,
}

impl Level {
    /// A level inside those that the calling task is in.
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

    /// Does `act`, a poll, inside this level.
    pub(crate) fn within<T>(self: &Arc<Self>, act: impl FnOnce() -> T) -> T {
        let _inside = self.enter();
        act()
    }

    /// Inside this level until the value is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Restored {
        let here = Here {
            level: Arc::clone(self),
            task: task::try_id(),
        };
        let outside = INNERMOST.try_with(|innermost| innermost.replace(Some(here)));
        Restored(outside.ok())
    }

    /// The nearest level of the lock that is wanted, from the calling task's innermost outwards.
    fn nearest(spec: &LockSpec) -> Option<Arc<Self>> {
        let mut level = innermost();
        while let Some(here) = level {
            if Arc::ptr_eq(&here.engine, &spec.engine) && here.lease.key == spec.key {
                return Some(here);
            }
            level = here.around.clone();
        }
        None
    }

    fn turn(&self) -> Turn {
        self.turn.clone().unwrap_or_else(|| self.lease.turn())
    }
}

/// A wait that could never end is an error at once.
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

/// Where the poll is that is under way on this thread.
struct Here {
    level: Arc<Level>,
    /// A body may poll other tasks too, those of a `LocalSet` for example. They are not inside.
    task: Option<task::Id>,
}

thread_local! {
    static INNERMOST: RefCell<Option<Here>> = const { RefCell::new(None) };
}

fn innermost() -> Option<Arc<Level>> {
    let level = INNERMOST.try_with(|innermost| {
        let innermost = innermost.borrow();
        let here = innermost.as_ref()?;
        (here.task == task::try_id()).then(|| Arc::clone(&here.level))
    });
    level.ok().flatten()
}

/// Restores what was there before, however the poll ends.
#[must_use = "what was there before comes back when this is dropped"]
pub(crate) struct Restored(Option<Option<Here>>);

impl Drop for Restored {
    fn drop(&mut self) {
        if let Some(outside) = self.0.take() {
            // Out of the cell first: the last reference to a manager may go with what was in it.
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
        // Opened by the first poll: what is around it is where it runs, not where it was made.
        let level = this
            .level
            .get_or_insert_with(|| Level::open(this.engine, this.lease, this.turn.as_ref()));
        level.within(|| this.future.poll(context))
    }
}

impl<F> fmt::Debug for LockScope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockScope")
    }
}
