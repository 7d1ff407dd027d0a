//! The lock under which a body runs: its own lock, or the lock of an outer body.

use std::sync::Arc;
use std::task::Context;

use tracing::span::Entered;

use crate::active::ActiveLease;
use crate::api::guard::LockGuard;
use crate::api::handle::LockHandle;
use crate::base::BoxFuture;
use crate::base::error::Error;
use crate::base::options::{Reentrancy, ReleaseMode, Wait};
use crate::base::telemetry::Acquisition;
use crate::engine::reentry::{Entry, Level, check_ends_inside, check_not_inside};
use crate::engine::spec::LockSpec;
use crate::engine::take::acquire;
use crate::lease::Loss;
use crate::timer::Timer;

pub(crate) enum Ownership {
    Own(LockGuard),
    Entered(Entry),
}

/// Acquires a lock of its own, and never enters an outer one.
pub(crate) async fn take_guard(spec: LockSpec) -> Result<LockGuard, Error> {
    check_ends_inside(&spec)?;
    if spec.wait != Wait::None {
        check_not_inside(
            &spec,
            "the call would wait for itself, because the calling code already holds this lock; \
             `acquire` never enters a held lock, but `run` and `#[distributed_lock]` do",
        )?;
    }
    acquire_guard(&spec).await
}

async fn acquire_guard(spec: &LockSpec) -> Result<LockGuard, Error> {
    let now = || spec.engine.now();
    let acquisition = Acquisition::begins(now);
    let acquired = acquire(spec).await;
    acquisition.ends(&acquired, spec.wait != Wait::None, now);
    Ok(LockGuard::new(&spec.engine, acquired?, spec.cooldown))
}

/// Enters the lock if the calling task is inside it, and acquires it otherwise.
pub(crate) async fn enter(spec: LockSpec, reentrancy: Reentrancy) -> Result<Ownership, Error> {
    match reentrancy {
        Reentrancy::Enter => {
            if let Some(entry) = Entry::find(&spec).await? {
                return Ok(Ownership::Entered(entry));
            }
        }
        Reentrancy::Refuse => check_not_inside(
            &spec,
            "the call would wait for itself, because the calling code already holds this lock, and \
             re-entry is switched off here",
        )?,
    }
    take_own(&spec).await
}

/// Acquires a lock of its own. Code that is inside the lock gets `Invalid`, with this advice.
#[cfg(feature = "idempotent")]
pub(crate) async fn enter_from_outside(
    spec: LockSpec,
    advice: &'static str,
) -> Result<Ownership, Error> {
    check_not_inside(&spec, advice)?;
    take_own(&spec).await
}

async fn take_own(spec: &LockSpec) -> Result<Ownership, Error> {
    check_ends_inside(spec)?;
    acquire_guard(spec).await.map(Ownership::Own)
}

impl Ownership {
    pub(crate) fn lease(&self) -> &ActiveLease {
        match self {
            Ownership::Own(guard) => &guard.lease,
            Ownership::Entered(entry) => &entry.lease,
        }
    }

    pub(crate) fn handle(&self) -> LockHandle {
        match self {
            Ownership::Own(guard) => guard.handle(),
            Ownership::Entered(entry) => LockHandle::inside(entry),
        }
    }

    /// Returns the reentry level of the body.
    pub(crate) fn level(&self) -> Arc<Level> {
        match self {
            Ownership::Own(guard) => guard.level(),
            Ownership::Entered(entry) => {
                Level::open(&entry.engine, &entry.lease, Some(&entry.turn))
            }
        }
    }

    /// Enters the span `lock.hold`, if it is enabled, until the value is dropped.
    pub(crate) fn enter_span(&self) -> Option<Entered<'_>> {
        match self {
            Ownership::Own(guard) => guard.enter_span(),
            Ownership::Entered(_) => None,
        }
    }

    pub(crate) fn poll_lost(
        &mut self,
        waker_id: &mut Option<u32>,
        context: &mut Context<'_>,
    ) -> Option<Loss> {
        match self {
            Ownership::Own(guard) => guard.engine.poll_lost(&guard.lease, waker_id, context),
            Ownership::Entered(entry) => entry.poll_lost(waker_id, context),
        }
    }

    /// Returns the timer of the longest hold.
    pub(crate) fn limit(&self) -> Timer {
        let engine = match self {
            Ownership::Own(guard) => &guard.engine,
            Ownership::Entered(entry) => &entry.engine,
        };
        engine.timers.at(self.lease().max_hold_at())
    }

    /// Ends the ownership after the body, and returns the release to wait for, if any.
    pub(crate) fn end(
        self,
        succeeded: bool,
        release: ReleaseMode,
    ) -> Option<BoxFuture<'static, Result<(), Error>>> {
        match self {
            Ownership::Own(mut guard) => {
                if !succeeded {
                    guard.forget_cooldown();
                }
                match release {
                    ReleaseMode::Await => Some(Box::pin(guard.release())),
                    ReleaseMode::Background => {
                        guard.release_in_background();
                        None
                    }
                }
            }
            Ownership::Entered(entry) => {
                if succeeded {
                    entry.work_is_done();
                }
                None
            }
        }
    }
}
