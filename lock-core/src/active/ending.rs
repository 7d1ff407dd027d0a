//! The end of a lease in this process, and its owner's wishes for the end in the store.

use std::sync::Arc;
use std::time::Duration;

use super::{ActiveLease, LeaseState, tell};
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::record::Record;
use crate::base::sync::lock;
use crate::lease::{Loss, Phase};
use crate::store::{Cooldown, Release, Replaced};

/// The result of [`ActiveLease::close`].
pub(crate) enum Closed {
    /// Bodies or kept work still run under the lease, and the last of them ends it.
    NotYet,
    /// The lease is closed. `gap`: its key is left to clients of other libraries for a moment.
    Now { before: Phase, gap: bool },
}

/// The result of [`ActiveLease::detach`].
pub(crate) enum Detached {
    /// Bodies that have entered the lease, or work that keeps it, still run, so it goes on.
    Inside,
    /// The lease has ended in this process. It was in this phase before, and would have lasted until then.
    From(Phase, Moment),
}

/// The owner's wishes for the end of its lease.
pub(crate) struct Wishes {
    pub(crate) record: Option<Arc<Record>>,
    pub(crate) cooldown: Cooldown,
    /// Leaves the key free for clients of other libraries for a moment.
    pub(crate) gap: bool,
}

impl ActiveLease {
    /// Notes that an operator has freed the key. `true`: the lease is lost just now, and the engine has to be told.
    #[must_use]
    pub(crate) fn force(&self) -> bool {
        self.is_lost_by(|lease, _| lease.lose_with(Loss::Forced))
    }

    /// Ends the lease in this process, so that it is not renewed any more. The engine has to disarm it.
    pub(crate) fn close(&self) -> Closed {
        let now = self.now();
        let mut state = lock(&self.state);
        let LeaseState { lease, bodies, .. } = &mut *state;
        // Kept work is not dropped with the loss, as bodies are. The key of a lost lease is not given back under it
        // either. The keeper reports a loss that is due by now.
        if let Some(bodies) = bodies
            && bodies.kept > 0
            && bodies.abandon()
        {
            return Closed::NotYet;
        }
        let just_lost = lease.observe(now);
        if lease.phase() == Phase::Held
            && let Some(bodies) = bodies
            && bodies.abandon()
        {
            return Closed::NotYet;
        }
        let gap = state.leaves_a_gap(now);
        state.gap = gap;
        let before = state.lease.close(now);
        tell(state, just_lost);
        Closed::Now { before, gap }
    }

    /// Ends the lease in this process, because another token takes its place in the store. The engine has to disarm it.
    pub(crate) fn detach(&self) -> Detached {
        let now = self.now();
        let mut state = lock(&self.state);
        let just_lost = state.lease.observe(now);
        let inside = state.bodies.as_ref().is_some_and(|bodies| bodies.is_open());
        if inside && state.lease.phase() == Phase::Held {
            return Detached::Inside;
        }
        let ends = now + state.lease.remaining(now);
        let before = state.lease.close(now);
        tell(state, just_lost);
        Detached::From(before, ends)
    }

    /// Describes the lease to the next owner of this process, which may step over it.
    pub(crate) fn replaced(&self) -> Replaced {
        Replaced {
            token: self.token,
            fence: self.fence(),
        }
    }

    pub(crate) fn release(&self) -> Release {
        Release {
            key: Arc::clone(&self.key),
            token: self.token,
            ttl: self.ttl(),
            fence: self.fence(),
            in_background: false,
        }
    }

    pub(crate) fn wishes(&self) -> Wishes {
        let state = lock(&self.state);
        Wishes {
            record: state.record.clone(),
            cooldown: Cooldown {
                span: Duration::from_millis(u64::from(state.cooldown_millis)),
                until_millis: state.cool_until_millis,
            },
            gap: state.gap,
        }
    }

    /// Returns the error that says why this lease is not held any more.
    pub(crate) fn loss_error(&self, loss: Loss) -> Error {
        let error = match loss {
            Loss::MaxHold => Error::max_hold(),
            Loss::Expired => Error::lost(
                "the lock ran out before it could be renewed; the work may be half done",
            ),
            Loss::Forced => Error::lost("an operator freed the lock; the work may be half done"),
            Loss::NotOurs => Error::lost(
                "the lock was deleted or taken over in the store; the work may be half done",
            ),
            Loss::OtherKey => Error::lost(
                "one of the lock's keys was deleted or taken over in the store; the work may be half done",
            ),
        };
        error.with_key(&self.key)
    }
}
