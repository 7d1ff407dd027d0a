//! What a body runs under: a lock of its own, or a place inside the lock of an outer body.

use std::sync::Arc;
use std::task::Context;

use tracing::span::Entered;

use crate::api::guard::LockGuard;
use crate::api::handle::LockHandle;
use crate::base::BoxFuture;
use crate::base::error::Error;
use crate::base::options::{Reentrancy, ReleaseMode, Wait};
use crate::engine::acquire::acquire;
use crate::engine::reentry::{Entry, Level, check_not_inside};
use crate::engine::spec::Wanted;
use crate::lease::Loss;

pub(crate) enum Tenure {
    Own(LockGuard),
    Entered(Entry),
}

/// Takes the lock, and never enters one.
pub(crate) async fn take_guard(wanted: Wanted) -> Result<LockGuard, Error> {
    if wanted.wait != Wait::None {
        check_not_inside(
            &wanted,
            "this would wait for itself: the calling code runs under the same lock already; \
             `acquire` never enters it again, `run` and `#[distributed_lock]` do",
        )?;
    }
    acquire(&wanted).await
}

/// Enters the lock if the calling task is inside it; takes it otherwise.
pub(crate) async fn enter(wanted: Wanted, reentrancy: Reentrancy) -> Result<Tenure, Error> {
    match reentrancy {
        Reentrancy::Enter => {
            if let Some(entry) = Entry::find(&wanted).await? {
                return Ok(Tenure::Entered(entry));
            }
        }
        Reentrancy::Refuse => check_not_inside(
            &wanted,
            "this would wait for itself: the calling code runs under the same lock already, and \
             re-entry is switched off here",
        )?,
    }
    acquire(&wanted).await.map(Tenure::Own)
}

impl Tenure {
    pub(crate) fn handle(&self) -> LockHandle {
        match self {
            Tenure::Own(guard) => guard.handle(),
            Tenure::Entered(entry) => LockHandle::inside(entry),
        }
    }

    /// What the body is inside of.
    pub(crate) fn level(&self) -> Arc<Level> {
        match self {
            Tenure::Own(guard) => guard.level(),
            Tenure::Entered(entry) => Level::open(&entry.hold, Some(&entry.turn)),
        }
    }

    /// The hold's span, if there is one, until the value is dropped.
    pub(crate) fn enter_span(&self) -> Option<Entered<'_>> {
        match self {
            Tenure::Own(guard) => guard.enter_span(),
            Tenure::Entered(_) => None,
        }
    }

    pub(crate) fn poll_lost(
        &mut self,
        seat: &mut Option<u32>,
        context: &mut Context<'_>,
    ) -> Option<Loss> {
        match self {
            Tenure::Own(guard) => guard.poll_lost(seat, context),
            Tenure::Entered(entry) => entry.poll_lost(seat, context),
        }
    }

    pub(crate) fn forget_waker(&self, seat: Option<u32>) {
        match self {
            Tenure::Own(guard) => guard.forget_waker(seat),
            Tenure::Entered(entry) => entry.hold.forget_waker(seat),
        }
    }

    pub(crate) fn loss_error(&self, loss: Loss) -> Error {
        match self {
            Tenure::Own(guard) => guard.loss_error(loss),
            Tenure::Entered(entry) => entry.hold.loss_error(loss),
        }
    }

    /// The body has ended, and done its work or not. Answers what is still to be waited for.
    pub(crate) fn end(
        self,
        succeeded: bool,
        release: ReleaseMode,
    ) -> Option<BoxFuture<'static, Result<(), Error>>> {
        match self {
            Tenure::Own(mut guard) => {
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
            Tenure::Entered(entry) => {
                if succeeded {
                    entry.work_is_done();
                }
                None
            }
        }
    }
}
