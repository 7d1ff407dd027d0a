//! One lease as the process sees it: shared by the guard, its handles, the keeper and the queue.

mod bodies;
mod held_long;
mod successor;
#[cfg(all(test, feature = "test-util"))]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::Waker;
use std::time::Duration;

use crate::base::clock::{Clock, Moment};
use crate::base::error::Error;
use crate::base::fence::FencingToken;
use crate::base::options::cooldown_millis;
use crate::base::sync::{WakerSet, lock, wake_all};
use crate::base::token::Token;
use crate::lease::cohort::Cohort;
use crate::lease::{Action, Lease, LeaseOptions, Loss, Phase, Renewal};
use crate::store::{Acquire, Extension, Operation, Release, Replaced};

use bodies::Bodies;
pub(crate) use bodies::{Turn, new_turn};
pub use held_long::HeldLong;
use held_long::tell_held_long;

/// What became of a lease that was to be closed.
pub(crate) enum Closed {
    /// Bodies are still under it, and the last of them ends it.
    NotYet,
    /// It is closed. `gap`: its key is left to clients of other libraries for a moment.
    Now { before: Phase, gap: bool },
}

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

pub(crate) struct ActiveLease {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    clock: Clock,
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
    late_duplicate: bool,
    /// Whether whoever asks for it was woken to see that it is polled, and was not.
    unpolled: bool,
    /// Whether it has been passed to a waiter that has not picked it up.
    in_handoff: bool,
    /// Who waits for this lease to be lost, or for the answer that never came.
    waiting: WakerSet,
    /// The bodies that have entered this lease, once there was one.
    bodies: Option<Box<Bodies>>,
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

impl ActiveLease {
    pub(crate) fn new(
        key: &Arc<str>,
        token: Token,
        options: LeaseOptions,
        clock: &Clock,
    ) -> Arc<Self> {
        Arc::new(Self {
            key: Arc::clone(key),
            token,
            clock: clock.clone(),
            state: Mutex::new(State {
                lease: Lease::new(options),
                fence: None,
                granted_at: Moment::FAR,
                cohort: Cohort::new(Moment::FAR),
                gap: false,
                cooldown_millis: 0,
                late_duplicate: false,
                unpolled: false,
                in_handoff: false,
                waiting: WakerSet::default(),
                bodies: None,
                watch: None,
            }),
            scheduled: AtomicU64::new(Moment::FAR.0),
        })
    }

    fn now(&self) -> Moment {
        self.clock.now()
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

    /// Whether another task has ended it.
    pub(crate) fn is_closed(&self) -> bool {
        self.noticed_phase() == Phase::Closed
    }

    /// Whom to wake, to see whether the future that asks for it is polled. `None`: it has not been since
    /// the last time.
    pub(crate) fn probe(&self) -> Option<Vec<(u32, Waker)>> {
        let mut state = lock(&self.state);
        let asked_before = std::mem::replace(&mut state.unpolled, true);
        (!asked_before).then(|| state.waiting.take())
    }

    /// Whether it was asked after, and its future has not been polled since.
    pub(crate) fn is_unpolled(&self) -> bool {
        lock(&self.state).unpolled
    }

    pub(crate) fn note_late_duplicate(&self) {
        lock(&self.state).late_duplicate = true;
    }

    pub(crate) fn has_late_duplicate(&self) -> bool {
        lock(&self.state).late_duplicate
    }

    // While it is held. Every look reads the clock first: a process that was stopped longer than
    // its lease finds out at the first of them.

    /// Reads the clock: the phase, and whether the lease is lost by this very look. Then the engine has to
    /// hear of it.
    pub(crate) fn observe(&self) -> (Phase, bool) {
        let now = self.now();
        let mut state = lock(&self.state);
        let lost = state.lease.observe(now);
        let phase = state.lease.phase();
        if lost {
            let waiting = state.waiting.take();
            drop(state);
            wake_all(waiting);
        }
        (phase, lost)
    }

    /// The phase that was last noticed, without a look at the clock.
    pub(crate) fn noticed_phase(&self) -> Phase {
        lock(&self.state).lease.phase()
    }

    pub(crate) fn wake_on_change(&self, waker_id: &mut Option<u32>, waker: &Waker) {
        let mut state = lock(&self.state);
        state.unpolled = false;
        state.waiting.register(waker_id, waker);
    }

    pub(crate) fn forget_waker(&self, waker_id: Option<u32>) {
        lock(&self.state).waiting.remove(waker_id);
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
        if action == Action::HeldLong {
            tell_held_long(watch, held_for);
        }
        action
    }

    /// Its key may be gone: the next renewal is due now.
    pub(crate) fn renew_now(&self) {
        let now = self.now();
        lock(&self.state).lease.renew_now(now);
    }

    /// The answer to a renewal. `true`: the lease is lost by it, and the engine has to hear of it.
    #[must_use]
    pub(crate) fn renewed(&self, sent: Moment, answer: Renewal) -> bool {
        let now = self.now();
        let mut state = lock(&self.state);
        let lost = state.lease.renewed(sent, answer, now);
        if lost {
            let waiting = state.waiting.take();
            drop(state);
            wake_all(waiting);
        }
        lost
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
    /// will end it. The engine has to disarm it.
    pub(crate) fn close(&self) -> Closed {
        let now = self.now();
        let mut state = lock(&self.state);
        let State { lease, bodies, .. } = &mut *state;
        lease.observe(now);
        if lease.phase() == Phase::Held
            && let Some(bodies) = bodies
            && bodies.abandon()
        {
            return Closed::NotYet;
        }
        let gap = state.leaves_a_gap(now);
        state.gap = gap;
        let before = state.lease.close(now);
        let waiting = state.waiting.take();
        drop(state);
        wake_all(waiting);
        Closed::Now { before, gap }
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
impl ActiveLease {
    pub(crate) fn scheduled(&self) -> Moment {
        Moment(self.scheduled.load(Ordering::Relaxed))
    }

    pub(crate) fn set_scheduled(&self, at: Moment) {
        self.scheduled.store(at.0, Ordering::Relaxed);
    }
}
