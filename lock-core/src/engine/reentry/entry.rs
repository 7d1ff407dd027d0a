//! A body's place inside a lock that an outer body holds.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{AcquireError, SemaphorePermit};

use super::Level;
use crate::active::{Hold, Turn, Watch, new_turn};
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::options::Wait;
use crate::engine::release;
use crate::engine::spec::Wanted;
use crate::keeper::Timer;
use crate::lease::{Loss, Phase, Terms};
use crate::queue::held_fact;

/// Same lease, same fencing token. The lock is not given back while it lives.
pub(crate) struct Entry {
    pub(crate) hold: Arc<Hold>,
    /// Of those that enter this body's own level.
    pub(crate) turn: Turn,
    /// The level's that it has entered.
    _taken: Taken,
    terms: Terms,
    cooldown: Duration,
    /// When this body has run for as long as it may.
    limit: Option<Timer>,
}

impl Entry {
    /// Enters the lock that is wanted, if the calling task is inside it.
    ///
    /// # Errors
    ///
    /// `Lost` if the outer lock is lost, `Busy` if another body is inside to the end of the wait.
    pub(crate) async fn find(wanted: &Wanted) -> Result<Option<Self>, Error> {
        let Some(level) = Level::nearest(wanted) else {
            return Ok(None);
        };
        let entered = enter(&level, wanted).await;
        entered.map_err(|error| error.with_key(&wanted.key))
    }

    /// Whether the body has to end, by its own limit or by the lock's loss.
    pub(crate) fn poll_lost(
        &mut self,
        seat: &mut Option<u32>,
        context: &mut Context<'_>,
    ) -> Option<Loss> {
        let limit = self.limit.as_mut();
        if limit.is_some_and(|limit| Pin::new(limit).poll(context).is_ready()) {
            return Some(Loss::MaxHold);
        }
        self.hold.poll_lost(seat, context)
    }

    /// The body has done its work: the outermost applies its cooldown, or a longer one.
    pub(crate) fn work_is_done(&self) {
        self.hold.set_cooldown(self.cooldown);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.hold.leave(self.terms) {
            release::in_background(&self.hold);
        }
        self.hold.core.keeper.guard_ended();
    }
}

async fn enter(level: &Level, wanted: &Wanted) -> Result<Option<Entry>, Error> {
    let taken = take_turn(level, wanted).await?;
    match level.hold.enter(wanted.terms) {
        Phase::Held => {}
        Phase::Lost(loss) => return Err(level.hold.loss_error(loss)),
        // Given back before the scope's end: from here on it is a lock like any other.
        Phase::Asking | Phase::Closed => return Ok(None),
    }
    let keeper = &wanted.core.keeper;
    keeper.guard_made();
    let limit = keeper.clock.now() + wanted.terms.max_hold();
    Ok(Some(Entry {
        hold: Arc::clone(&level.hold),
        turn: new_turn(),
        _taken: taken,
        terms: wanted.terms,
        cooldown: wanted.cooldown,
        limit: (limit < Moment::FAR).then(|| keeper.timer(limit)),
    }))
}

/// A turn that was taken. Dropping it lets the next one in.
struct Taken(Turn);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

impl Taken {
    fn by(permit: Result<SemaphorePermit<'_>, AcquireError>, turn: &Turn) -> Option<Self> {
        let permit = permit.ok()?;
        permit.forget();
        Some(Self(Arc::clone(turn)))
    }
}

/// Waits for the turn, in the order of arrival, as long as the request says and the lock lasts.
async fn take_turn(level: &Level, wanted: &Wanted) -> Result<Taken, Error> {
    let turn = level.turn();
    let keeper = &wanted.core.keeper;
    let give_up = match wanted.wait {
        Wait::None => keeper.clock.now(),
        Wait::For(span) => keeper.clock.now() + span,
        Wait::Forever => Moment::FAR,
    };
    let mut permit = pin!(turn.acquire());
    let mut timer = pin!(keeper.timer(give_up));
    let mut watch = Watch::new(&level.hold);
    poll_fn(|context| {
        if let Some(loss) = watch.poll_lost(context) {
            return Poll::Ready(Err(level.hold.loss_error(loss)));
        }
        if let Poll::Ready(permit) = permit.as_mut().poll(context)
            && let Some(taken) = Taken::by(permit, &turn)
        {
            return Poll::Ready(Ok(taken));
        }
        let over = timer.as_mut().poll(context);
        over.map(|()| Err(occupied(&level.hold)))
    })
    .await
}

/// Another body is inside, and this process holds the lock: that is a fact.
fn occupied(hold: &Hold) -> Error {
    let now = hold.core.keeper.clock.now();
    held_fact(hold, now).map_or_else(|| Error::busy(false, None), |refusal| refusal.to_error())
}
