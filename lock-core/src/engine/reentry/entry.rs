//! A body inside a lock that an outer body holds.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::Level;
use crate::active::{ActiveLease, Turn, new_turn};
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::options::Wait;
use crate::engine::Engine;
use crate::engine::loss_watch::LossWatch;
use crate::engine::spec::LockSpec;
use crate::lease::{LeaseOptions, Loss, Phase};
use crate::queue::held_fact;
use crate::timer::Timer;

/// An entered lock: the same lease and fencing token. The lock is not given back while it lives.
pub(crate) struct Entry {
    pub(crate) engine: Arc<Engine>,
    pub(crate) lease: Arc<ActiveLease>,
    /// The turn of the bodies that enter this body's own level.
    pub(crate) turn: Turn,
    /// The turn of the level that it has entered. Work that keeps the lock for this body shares it.
    pub(crate) taken: Arc<OwnedSemaphorePermit>,
    options: LeaseOptions,
    cooldown: Duration,
    /// Ends when this body has run for as long as it may.
    limit: Option<Timer>,
    /// The waker of the body in the lease, which outlives the body.
    waker_id: Option<u32>,
}

impl Entry {
    /// Enters the lock if the calling task is inside it.
    ///
    /// # Errors
    ///
    /// `Lost` if the outer lock is lost, `Busy` if another body is inside to the end of the wait.
    pub(crate) async fn find(spec: &LockSpec) -> Result<Option<Self>, Error> {
        let Some(level) = Level::nearest(spec) else {
            return Ok(None);
        };
        if !spec.keys().all(|key| level.lease.covers(key)) {
            // Outside of its lock the task would wait for itself; a lock that has ended is none.
            return match spec.engine.is_valid(&level.lease) {
                true => Err(Error::invalid(
                    "the calling code holds some of these keys and not all of them, so the call would wait for itself; \
                     lock all keys in the outer call",
                )
                .with_key(&spec.key)),
                false => Ok(None),
            };
        }
        if !level.admits(spec) && level.engine.is_valid(&level.lease) {
            return Err(Error::invalid(
                "the call would wait for itself, because the calling code is inside a share of this lock; a reader \
                 admits readers only, and a permit admits as many permits or more; release the share first",
            )
            .with_key(&spec.key));
        }
        let entered = enter(&level, spec).await;
        entered.map_err(|error| error.with_key(&spec.key))
    }

    /// Returns whether the body has to end, by its own limit or by the lock's loss.
    pub(crate) fn poll_lost(
        &mut self,
        waker_id: &mut Option<u32>,
        context: &mut Context<'_>,
    ) -> Option<Loss> {
        let limit = self.limit.as_mut();
        if limit.is_some_and(|limit| Pin::new(limit).poll(context).is_ready()) {
            return Some(Loss::MaxHold);
        }
        let lost = self.engine.poll_lost(&self.lease, waker_id, context);
        self.waker_id = *waker_id;
        lost
    }

    /// Notes that the body has done its work: the outermost applies its cooldown, or a longer one.
    pub(crate) fn work_is_done(&self) {
        for lease in self.lease.members() {
            lease.set_cooldown(self.cooldown);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.lease.forget_waker(self.waker_id);
        if self.lease.leave(self.options) {
            self.engine.end_in_background(&self.lease);
        }
        self.engine.keeper.guard_ended();
    }
}

async fn enter(level: &Level, spec: &LockSpec) -> Result<Option<Entry>, Error> {
    let taken = take_turn(level, spec).await?;
    let engine = &spec.engine;
    engine.phase(&level.lease);
    match level.lease.enter(spec.options) {
        Phase::Held => {}
        Phase::Lost(loss) => return Err(level.lease.loss_error(loss)),
        // The lock was given back before the scope's end, so it is acquired like any other.
        Phase::Asking | Phase::Closed => return Ok(None),
    }
    for lease in level.lease.members() {
        engine.keeper.arm(lease);
    }
    engine.keeper.guard_made();
    let limit = engine.now() + spec.options.max_hold();
    Ok(Some(Entry {
        engine: Arc::clone(engine),
        lease: Arc::clone(&level.lease),
        turn: new_turn(),
        taken: Arc::new(taken),
        options: spec.options,
        cooldown: spec.cooldown,
        limit: (limit < Moment::FAR).then(|| engine.timers.at(limit)),
        waker_id: None,
    }))
}

/// Waits for the turn, in the order of arrival, as long as the request says and the lock lasts.
async fn take_turn(level: &Level, spec: &LockSpec) -> Result<OwnedSemaphorePermit, Error> {
    let engine = &spec.engine;
    let give_up = match spec.wait {
        Wait::None => engine.now(),
        Wait::For(span) => engine.now() + span,
        Wait::Forever => Moment::FAR,
    };
    let mut permit = pin!(level.turn().acquire_owned());
    let mut timer = pin!(engine.timers.at(give_up));
    let mut watch = LossWatch::new(engine, &level.lease);
    poll_fn(|context| {
        if let Some(loss) = watch.poll_lost(context) {
            return Poll::Ready(Err(level.lease.loss_error(loss)));
        }
        if let Poll::Ready(Ok(taken)) = permit.as_mut().poll(context) {
            return Poll::Ready(Ok(taken));
        }
        let over = timer.as_mut().poll(context);
        // Another body is inside: a fact, because this process holds the lock.
        over.map(|()| {
            let held = held_fact(&level.lease, engine.now());
            Err(held.map_or_else(|| Error::busy(false, None), |held| held.to_error()))
        })
    })
    .await
}
