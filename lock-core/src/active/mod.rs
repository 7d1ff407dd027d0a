//! One lease as the process sees it: shared by the guard, its handles, the keeper and the queue.

mod bodies;
mod held_long;
mod successor;
#[cfg(all(test, feature = "test-util"))]
mod tests;
mod watch;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::fence::FencingToken;
use crate::base::options::cooldown_millis;
use crate::base::sync::{WakerSet, lock, wake_all};
use crate::base::token::{Address, Token};
use crate::engine::Core;
use crate::keeper::Job;
use crate::lease::cohort::{Cohort, GAP};
use crate::lease::{Action, Lease, Loss, Phase, Renewal, Terms};
use crate::queue::Local;
use crate::store::{Acquire, Extension, Operation, Release, Replaced};

use bodies::Nested;
pub(crate) use bodies::{Turn, new_turn};
pub use held_long::HeldLong;
use held_long::tell_held_long;
pub(crate) use watch::Watch;

/// How a lease that was held ends in the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Release,
    Vacate,
    Cool(Duration),
}

impl Ending {
    pub(crate) fn of(self, release: Release) -> Operation {
        match self {
            Ending::Release => Operation::Release(release),
            Ending::Vacate => Operation::Vacate(release),
            Ending::Cool(cooldown) => Operation::Cool(release, cooldown),
        }
    }
}

pub(crate) struct Hold {
    pub(crate) core: Arc<Core>,
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    state: Mutex<State>,
    /// Where the keeper's schedule has this hold; written under the schedule's lock only.
    pub(crate) scheduled: AtomicU64,
}

struct State {
    lease: Lease,
    fence: Option<FencingToken>,
    granted_at: Moment,
    cohort: Cohort,
    /// Set if the release leaves the key free for a moment.
    gap: bool,
    cooldown_millis: u32,
    /// Whether a send of its acquire went unanswered, and may arrive at any time.
    late_twin: bool,
    /// Whether whoever asks for it was woken to see that it is polled, and was not.
    silent: bool,
    /// Whether it has been passed to a waiter that has not picked it up.
    on_its_way: bool,
    /// Who waits for this lease to be lost, or for the answer that never came.
    waiting: WakerSet,
    /// The bodies that have entered this lease, once there was one.
    nested: Option<Box<Nested>>,
    /// Who says whose lock it is when it is held for very long; gone with its owner.
    watch: Option<Weak<dyn HeldLong>>,
}

impl State {
    /// Whether a gap is due, in which clients of other libraries find the key free.
    fn leaves_a_gap(&self, now: Moment) -> bool {
        let due = |fence| self.cohort.leaves_a_gap(fence, now);
        self.lease.leaves_gaps() && self.fence.is_some_and(due)
    }
}

impl Hold {
    /// `address`: where its waiter is told what becomes of it.
    pub(crate) fn new(
        core: &Arc<Core>,
        key: &Arc<str>,
        terms: Terms,
        address: Address,
    ) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::clone(core),
            key: Arc::clone(key),
            token: core.tokens.fresh_at(address, core.keeper.clock.now()),
            state: Mutex::new(State {
                lease: Lease::new(terms),
                fence: None,
                granted_at: Moment::FAR,
                cohort: Cohort::new(Moment::FAR),
                gap: false,
                cooldown_millis: 0,
                late_twin: false,
                silent: false,
                on_its_way: false,
                waiting: WakerSet::default(),
                nested: None,
                watch: None,
            }),
            scheduled: AtomicU64::new(Moment::FAR.0),
        })
    }

    fn now(&self) -> Moment {
        self.core.keeper.clock.now()
    }

    // While it is asked for.

    pub(crate) fn ask(&self, overdue: Moment) {
        lock(&self.state).lease.ask(overdue);
    }

    /// `false`: the grant came too late to count.
    #[must_use]
    pub(crate) fn grant(&self, sent: Moment, fence: FencingToken) -> bool {
        let now = self.now();
        let mut state = lock(&self.state);
        state.fence = Some(fence);
        state.granted_at = now;
        state.cohort = Cohort::new(now);
        state.lease.grant(sent, now)
    }

    /// The store gave it the key unasked, until `deadline`. `false`: that is too soon to count.
    #[must_use]
    pub(crate) fn take_over(&self, deadline: Moment, fence: FencingToken) -> bool {
        let now = self.now();
        let mut state = lock(&self.state);
        let counts = state.lease.take_over(deadline, now);
        if counts {
            state.fence = Some(fence);
            state.granted_at = now;
            state.cohort = Cohort::new(now);
        }
        counts
    }

    pub(crate) fn acquire(
        &self,
        queue: bool,
        replaces: Option<Replaced>,
        repeated: bool,
    ) -> Acquire {
        Acquire {
            key: Arc::clone(&self.key),
            token: self.token,
            ttl: self.ttl(),
            queue,
            replaces,
            repeated,
        }
    }

    /// Whether somebody else has ended it.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).lease.phase() == Phase::Closed
    }

    /// Whom to wake, to see whether the future that asks for it is polled. `None`: it has not been since
    /// the last time.
    pub(crate) fn ask_after(&self) -> Option<Vec<(u32, Waker)>> {
        let mut state = lock(&self.state);
        let asked_before = std::mem::replace(&mut state.silent, true);
        (!asked_before).then(|| state.waiting.take())
    }

    /// Whether it was asked after, and its future has not been polled since.
    pub(crate) fn is_silent(&self) -> bool {
        lock(&self.state).silent
    }

    pub(crate) fn note_late_twin(&self) {
        lock(&self.state).late_twin = true;
    }

    pub(crate) fn has_late_twin(&self) -> bool {
        lock(&self.state).late_twin
    }

    // While it is held. Every look reads the clock first: a process that was stopped longer than
    // its lease finds out at the first of them.

    pub(crate) fn phase(&self) -> Phase {
        let now = self.now();
        let mut state = lock(&self.state);
        if state.lease.observe(now) {
            let waiting = state.waiting.take();
            let phase = state.lease.phase();
            drop(state);
            wake_all(waiting);
            self.core.local.abandon(self);
            return phase;
        }
        state.lease.phase()
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.phase() == Phase::Held
    }

    /// The loss, if the lease is lost or was never held; registers the task to be woken by it.
    pub(crate) fn poll_lost(&self, seat: &mut Option<u32>, context: &Context<'_>) -> Option<Loss> {
        self.wake_on_change(seat, context.waker());
        match self.phase() {
            Phase::Lost(loss) => Some(loss),
            _ => None,
        }
    }

    pub(crate) fn wake_on_change(&self, seat: &mut Option<u32>, waker: &Waker) {
        let mut state = lock(&self.state);
        state.silent = false;
        state.waiting.register(seat, waker);
    }

    pub(crate) fn forget_waker(&self, seat: Option<u32>) {
        lock(&self.state).waiting.remove(seat);
    }

    pub(crate) fn ttl(&self) -> Duration {
        lock(&self.state).lease.ttl()
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.remaining_at(self.now())
    }

    /// Without a look at the clock, and without telling anybody: callable under the queue's lock.
    pub(crate) fn remaining_at(&self, now: Moment) -> Duration {
        lock(&self.state).lease.remaining(now)
    }

    pub(crate) fn held_for(&self) -> Duration {
        let now = self.now();
        now.since(lock(&self.state).granted_at)
    }

    pub(crate) fn fence(&self) -> Option<FencingToken> {
        lock(&self.state).fence
    }

    pub(crate) fn cooldown(&self) -> Duration {
        Duration::from_millis(u64::from(lock(&self.state).cooldown_millis))
    }

    pub(crate) fn set_cooldown(&self, cooldown: Duration) {
        let millis = cooldown_millis(cooldown);
        let mut state = lock(&self.state);
        state.cooldown_millis = state.cooldown_millis.max(millis);
    }

    pub(crate) fn watch(&self, watch: Weak<dyn HeldLong>) {
        lock(&self.state).watch = Some(watch);
    }

    // The keeper's side.

    pub(crate) fn due(&self) -> Option<Moment> {
        lock(&self.state).lease.due()
    }

    /// What the keeper has to do about this lease now. Tells whom it concerns.
    pub(crate) fn poll(&self, now: Moment) -> Action {
        let mut state = lock(&self.state);
        let action = state.lease.poll(now);
        let waiting = match action {
            Action::Lost | Action::Overdue => state.waiting.take(),
            Action::Nothing | Action::Renew | Action::HeldLong => Vec::new(),
        };
        let held_for = now.since(state.granted_at);
        let watch = match action {
            Action::HeldLong => {
                // Again when the time has doubled: a lock that is meant to be held for days, as a
                // leader's, is a handful of lines.
                state.lease.warn_at(now + held_for);
                state.watch.clone()
            }
            _ => None,
        };
        drop(state);
        wake_all(waiting);
        match action {
            Action::Lost => self.core.local.abandon(self),
            Action::Overdue => Local::is_overdue(&self.core, &self.key),
            Action::HeldLong => tell_held_long(watch, held_for),
            Action::Nothing | Action::Renew => {}
        }
        action
    }

    /// Its key may be gone: the keeper asks now.
    pub(crate) fn renew_now(self: &Arc<Self>) {
        let now = self.now();
        lock(&self.state).lease.renew_now(now);
        self.core.keeper.rearm(self);
    }

    pub(crate) fn renewed(&self, sent: Moment, answer: Renewal) {
        let now = self.now();
        let mut state = lock(&self.state);
        if state.lease.renewed(sent, answer, now) {
            let waiting = state.waiting.take();
            let phase = state.lease.phase();
            drop(state);
            wake_all(waiting);
            self.core.local.abandon(self);
            if phase == Phase::Lost(Loss::NotOurs) {
                // A key that was deleted by hand is free, and its waiters do not know.
                self.core.keeper.submit(Job::hand_on(self));
            }
        }
    }

    pub(crate) fn extension(&self) -> Extension {
        Extension {
            key: Arc::clone(&self.key),
            token: self.token,
            ttl: lock(&self.state).lease.renewing_to(),
        }
    }

    // The end.

    /// Ends the lease on this side: no renewal from here on. Answers the phase it was in; `Closed`
    /// also if bodies that entered it from other tasks are still under it, and the last of them
    /// will end it.
    pub(crate) fn close(self: &Arc<Self>) -> Phase {
        let now = self.now();
        let mut state = lock(&self.state);
        let State { lease, nested, .. } = &mut *state;
        lease.observe(now);
        if lease.phase() == Phase::Held
            && let Some(nested) = nested
            && nested.abandon()
        {
            return Phase::Closed;
        }
        let gap = state.leaves_a_gap(now);
        state.gap = gap;
        let before = state.lease.close(now);
        let waiting = state.waiting.take();
        drop(state);
        wake_all(waiting);
        if gap {
            // Waiters of other processes come before the tasks of this one.
            let until = now + GAP + GAP / 5;
            self.core.courtesy.stand_back(&self.key, until, now);
        }
        self.core.keeper.disarm(self);
        before
    }

    /// As the next of this process may step over it.
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

    /// How the store is told of the end of this lease.
    pub(crate) fn ending(&self) -> Ending {
        let state = lock(&self.state);
        match (state.cooldown_millis, state.gap) {
            (0, false) => Ending::Release,
            (0, true) => Ending::Vacate,
            (millis, _) => Ending::Cool(Duration::from_millis(u64::from(millis))),
        }
    }

    /// The error that says why this lease is not held any more.
    pub(crate) fn loss_error(&self, loss: Loss) -> Error {
        let error = match loss {
            Loss::MaxHold => Error::max_hold(),
            Loss::Expired => Error::lost(
                "the lock ran out before it could be renewed; the work may be half done",
            ),
            Loss::NotOurs => Error::lost(
                "the lock was deleted or taken over in the store; the work may be half done",
            ),
        };
        error.with_key(&self.key)
    }
}

/// The place in the keeper's schedule, kept here so that the hold can be found there again.
impl Hold {
    pub(crate) fn scheduled(&self) -> Moment {
        Moment(self.scheduled.load(Ordering::Relaxed))
    }

    pub(crate) fn set_scheduled(&self, at: Moment) {
        self.scheduled.store(at.0, Ordering::Relaxed);
    }
}
