//! One lease as the process sees it. The guard, its handles, the keeper and the queue share it.
//!
//! A lease knows nothing of those who share it. A method that changes it says so in its result, and the
//! engine tells the queue and the keeper.

mod asking;
mod bodies;
#[cfg(all(test, feature = "test-util"))]
mod bodies_tests;
mod ending;
mod group;
mod held_long;
#[cfg(all(test, feature = "test-util"))]
mod held_tests;
mod hints;
mod kept;
mod role;
mod slot_name;
mod successor;
#[cfg(all(test, feature = "test-util"))]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::Waker;
use std::time::Duration;

use crate::base::clock::{Clock, Moment, ServerTime};
use crate::base::fence::FencingToken;
use crate::base::options::cooldown_millis;
use crate::base::record::Record;
use crate::base::sync::{WakerSet, lock, wake_all};
use crate::base::telemetry;
use crate::base::token::Token;
use crate::lease::cohort::Cohort;
use crate::lease::{Action, Extended, Lease, LeaseOptions, Phase};
use crate::store::Extension;

use bodies::Bodies;
pub(crate) use bodies::{Turn, new_turn};
pub(crate) use ending::{Closed, Detached};
use group::Membership;
pub use held_long::LongHoldObserver;
use held_long::tell_held_long;
pub(crate) use role::Role;
pub(crate) use slot_name::{OWN_LINE, SlotName, is_own_line, key_of_share, line_name, slot_name};

pub(crate) struct ActiveLease {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    clock: Clock,
    state: Mutex<LeaseState>,
    /// The time at which the keeper's schedule has this lease. Only written under the schedule's lock.
    pub(crate) scheduled: AtomicU64,
    /// Set if the lock has several keys.
    group: OnceLock<Box<Membership>>,
}

struct LeaseState {
    lease: Lease,
    fence: Option<FencingToken>,
    granted_at: Moment,
    role: Role,
    cohort: Cohort,
    /// Whether the release leaves the key free for a moment.
    gap: bool,
    cooldown_millis: u32,
    /// Until when the key stays taken, by the store's clock; zero for no such end.
    cool_until_millis: u64,
    /// The record that the end of the lease leaves in its key.
    record: Option<Arc<Record>>,
    /// Whether a send of its acquire was not answered, and may still arrive.
    late_duplicate: bool,
    /// Whether the task that asks for it was woken, and has not polled its future since.
    unpolled: bool,
    /// Whether it was handed to a waiter that has not picked it up.
    in_handoff: bool,
    /// Whether transactions of the application may check it. The store alone knows when they have ended.
    is_checked: bool,
    /// Tasks that wait for the loss of this lease, or for the answer of the store.
    waiting: WakerSet,
    /// The bodies that have entered this lease. `None` until the first one.
    bodies: Option<Box<Bodies>>,
    /// Told when the lock is held for very long. It ends with its owner.
    watch: Option<Weak<dyn LongHoldObserver>>,
}

impl LeaseState {
    fn new(lease: Lease) -> Self {
        Self {
            lease,
            fence: None,
            granted_at: Moment::FAR,
            role: Role::default(),
            cohort: Cohort::new(Moment::FAR),
            gap: false,
            cooldown_millis: 0,
            cool_until_millis: 0,
            record: None,
            late_duplicate: false,
            unpolled: false,
            in_handoff: false,
            is_checked: false,
            waiting: WakerSet::default(),
            bodies: None,
            watch: None,
        }
    }

    fn bodies(&mut self) -> &mut Bodies {
        let renewed = self.lease.options().renews();
        self.bodies.get_or_insert_with(|| Bodies::new(renewed))
    }

    /// Returns whether a gap is due, in which clients of other libraries find the key free.
    fn leaves_a_gap(&self, now: Moment) -> bool {
        let due = |fence| self.cohort.leaves_a_gap(fence, now);
        self.lease.options().leaves_gaps() && self.fence.is_some_and(due)
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
            state: Mutex::new(LeaseState::new(Lease::new(options))),
            scheduled: AtomicU64::new(Moment::FAR.0),
            group: OnceLock::new(),
        })
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Returns the name under which the queue of the process has the lease.
    pub(crate) fn slot(&self) -> SlotName<'_> {
        slot_name(&self.key, self.token)
    }

    // While it is held.

    /// Reads the clock. Returns the phase, and whether this very call has noticed the loss of the lease. The
    /// engine has to be told of a loss.
    pub(crate) fn observe(&self) -> (Phase, bool) {
        let now = self.now();
        let mut state = lock(&self.state);
        let lost = state.lease.observe(now);
        let phase = state.lease.phase();
        if lost {
            tell(state, true);
        }
        (phase, lost)
    }

    /// Returns the phase that was noticed last, without reading the clock.
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

    /// Takes all wakers, and counts them.
    #[cfg(all(test, feature = "test-util"))]
    pub(crate) fn take_wakers(&self) -> usize {
        lock(&self.state).waiting.take().len()
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.options().ttl()
    }

    pub(crate) fn options(&self) -> LeaseOptions {
        lock(&self.state).lease.options()
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.remaining_at(self.now())
    }

    /// Does not read the clock and wakes no task, so it may be called under the queue's lock.
    pub(crate) fn remaining_at(&self, now: Moment) -> Duration {
        lock(&self.state).lease.remaining(now)
    }

    pub(crate) fn held_for(&self) -> Duration {
        let now = self.now();
        now.since(lock(&self.state).granted_at)
    }

    pub(crate) fn max_hold_at(&self) -> Moment {
        lock(&self.state).lease.max_hold_at()
    }

    pub(crate) fn fence(&self) -> Option<FencingToken> {
        lock(&self.state).fence
    }

    /// Returns true if the key stays taken when the lease has ended.
    pub(crate) fn keeps_the_key(&self) -> bool {
        let state = lock(&self.state);
        state.cooldown_millis > 0 || state.cool_until_millis > 0 || state.record.is_some()
    }

    pub(crate) fn record(&self) -> Option<Arc<Record>> {
        lock(&self.state).record.clone()
    }

    /// Sets the record, in place of an earlier one.
    pub(crate) fn set_record(&self, record: Option<Arc<Record>>) {
        let before = std::mem::replace(&mut lock(&self.state).record, record);
        drop(before);
    }

    pub(crate) fn set_cooldown(&self, cooldown: Duration) {
        let millis = cooldown_millis(cooldown);
        let mut state = lock(&self.state);
        state.cooldown_millis = state.cooldown_millis.max(millis);
    }

    /// Keeps the key taken after the release until this time, by the store's clock.
    pub(crate) fn cool_until(&self, end: ServerTime) {
        // A key ends in whole milliseconds, and must not end before the time is over.
        lock(&self.state).cool_until_millis = end.0.div_ceil(1000);
    }

    /// Notes that transactions of the application may check the lease from now on. So its end reaches the store, and it is not
    /// passed on in the process.
    pub(crate) fn will_be_checked(&self) {
        lock(&self.state).is_checked = true;
    }

    pub(crate) fn watch(&self, watch: Weak<dyn LongHoldObserver>) {
        lock(&self.state).watch = Some(watch);
    }

    // The keeper's side.

    pub(crate) fn due(&self) -> Option<Moment> {
        lock(&self.state).lease.due()
    }

    /// Returns the keeper's next action for this lease, and wakes the tasks that it concerns.
    pub(crate) fn poll(&self, now: Moment) -> Action {
        let mut state = lock(&self.state);
        let action = state.lease.poll(now);
        match action {
            Action::Lost | Action::Overdue => tell(state, action == Action::Lost),
            Action::HeldLong => {
                let held_for = now.since(state.granted_at);
                // Again when the time has doubled, because a leader's lock is held for days and deserves few lines.
                state.lease.warn_at(now + held_for);
                let watch = state.watch.clone();
                drop(state);
                tell_held_long(watch, held_for);
            }
            Action::Nothing | Action::Renew => {}
        }
        action
    }

    /// Makes the next renewal due now, because the key may be gone.
    pub(crate) fn renew_now(&self) {
        let now = self.now();
        lock(&self.state).lease.renew_by(now);
    }

    /// Notes the answer to a renewal. `true`: the lease is lost, and the engine has to be told.
    #[must_use]
    pub(crate) fn renewed(&self, sent: Moment, answer: Extended) -> bool {
        self.is_lost_by(|lease, now| lease.renewed(sent, answer, now))
    }

    /// Notes the answer to a renewal of this extension that came after its time. `true`: the lease is lost, and the engine has to
    /// be told.
    #[must_use]
    pub(crate) fn renewed_late(
        &self,
        sent: Moment,
        answer: Extended,
        extended_to: Duration,
    ) -> bool {
        self.is_lost_by(|lease, now| lease.renewed_late(sent, answer, extended_to, now))
    }

    /// Changes the lease, and wakes its tasks if it is lost.
    pub(super) fn is_lost_by(&self, change: impl FnOnce(&mut Lease, Moment) -> bool) -> bool {
        let now = self.now();
        let mut state = lock(&self.state);
        let lost = change(&mut state.lease, now);
        if lost {
            tell(state, true);
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
}

/// Unlocks a lease whose state has changed, and wakes its tasks.
///
/// `just_lost`: the loss was noticed at this moment, and is counted. The recorder is foreign code, so neither the lease nor the
/// queue may be locked while it runs.
fn tell(mut state: MutexGuard<'_, LeaseState>, just_lost: bool) {
    let (phase, waiting) = (state.lease.phase(), state.waiting.take());
    drop(state);
    if just_lost && let Phase::Lost(loss) = phase {
        telemetry::lost(loss.reason());
    }
    wake_all(waiting);
}

/// The lease's entry in the keeper's schedule.
impl ActiveLease {
    pub(crate) fn scheduled(&self) -> Moment {
        Moment(self.scheduled.load(Ordering::Relaxed))
    }

    pub(crate) fn set_scheduled(&self, at: Moment) {
        self.scheduled.store(at.0, Ordering::Relaxed);
    }
}
