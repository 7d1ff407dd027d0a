//! A body under a lock: each of its polls, and its end, are judged.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lock_core::{LockHandle, LockManager};

use crate::ledger::{BodyEnd, ledger};
use crate::plan::Plan;
use crate::world::sim;

pub(super) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a body is told of its lock, and what is promised to it.
#[derive(Clone)]
pub(super) struct Terms {
    pub plan: Arc<Plan>,
    pub locks: LockManager,
    pub process: usize,
    pub call: usize,
    /// It goes on when its lock is lost.
    pub ignores_loss: bool,
    pub max_hold: Option<u64>,
    /// The library asks the server for its time before the body begins, and reads the clock after the answer.
    pub asks_for_time: bool,
    /// It ends when its manager begins to drain.
    pub ends_with_drain: bool,
    /// It has entered the lock of another body, whose end ends the lock.
    pub is_nested: bool,
}

pub(super) struct Watched {
    terms: Terms,
    lock: LockHandle,
    has_begun: bool,
    work: Work,
    then: Option<Box<dyn FnOnce() + Send>>,
}

/// How fresh the last reading of a process's clock is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Reading {
    is_old: bool,
    stops: u64,
}

impl Reading {
    fn of(process: usize) -> Self {
        sim().look(|state| {
            let it = &state.processes[process];
            Self {
                is_old: it.has_old_time,
                stops: it.stops_inside,
            }
        })
    }
}

impl Watched {
    pub(super) fn new(terms: Terms, lock: LockHandle, work: Work) -> Self {
        Self {
            terms,
            lock,
            has_begun: false,
            work,
            then: None,
        }
    }

    /// Calls `then` in the last poll of a body that ends by itself.
    pub(super) fn then(mut self, then: impl FnOnce() + Send + 'static) -> Self {
        self.then = Some(Box::new(then));
        self
    }

    fn judge_poll(&mut self) {
        let terms = &self.terms;
        if is_dead(terms.process) {
            return;
        }
        let reading = Reading::of(terms.process);
        let is_valid = looks(&terms.plan, terms.call, &self.lock);
        // This reads the clock too, so it comes before the second reading.
        let may_go_on = self.has_begun && terms.ignores_loss && (is_valid || !self.is_over());
        // The library reads the clock before it polls the body, and this is the last reading, as a rule.
        let read_since = terms.asks_for_time && !self.has_begun && sim().look(|state| state.thawed);
        let is_fresh = !reading.is_old && reading == Reading::of(terms.process) && !read_since;
        if !is_valid && !is_lost(&self.lock) {
            self.violates("a lock is released under its body");
        } else if !is_valid && is_fresh && !may_go_on {
            self.violates("a body is polled after the loss of its lock");
        }
        if terms.ends_with_drain && terms.locks.is_draining() {
            self.violates("a leader works on while its manager drains");
        }
        self.has_begun = true;
    }

    /// Returns whether the longest time of its lock is over.
    fn is_over(&self) -> bool {
        let longest = self.terms.max_hold.map(Duration::from_nanos);
        longest.is_some_and(|longest| self.lock.held_for() >= longest)
    }

    fn violates(&self, rule: &'static str) {
        let call = self.terms.call;
        ledger(|it| it.violates(rule, it.calls[call].to_string()));
    }

    fn judge_end(&self) {
        let terms = &self.terms;
        let is_valid = looks(&terms.plan, terms.call, &self.lock);
        let is_lost = is_lost(&self.lock);
        if !is_valid && !is_lost {
            self.violates("a lock is released before its body is dropped");
        }
        if terms.is_nested {
            return;
        }
        let (at, server_time) = sim().look(|state| (state.now, state.server_time(0)));
        let end = BodyEnd {
            at,
            server_time,
            held_for: self.lock.held_for().as_nanos() as u64,
            is_lost,
        };
        let counts_as_lost = is_lost && !self.is_over();
        ledger(|it| it.body_ends(terms.call, end, counts_as_lost));
        if is_lost && !terms.ignores_loss && !terms.plan.stops_processes() {
            // It is dropped before another owner can have the lock.
            let token = u64::from(self.lock.fencing_token());
            ledger(|it| it.claims(terms.call, token, at));
        }
    }
}

/// Looks at a lock once. Returns whether it is valid.
pub(super) fn looks(plan: &Plan, call: usize, lock: &LockHandle) -> bool {
    // Before the lock is checked, so that it was valid at this time.
    let now = sim().now();
    if !lock.is_valid() {
        return false;
    }
    let remaining = lock.remaining().as_nanos() as u64;
    let token = u64::from(lock.fencing_token());
    let granted = lock.acks().granted();
    ledger(|it| it.claims(call, token, now));
    sim().look(|state| {
        ledger(|it| {
            it.check_deadline(plan, state, call, remaining);
            if !plan.has_shares() {
                it.note_value(plan, state, call);
                it.check_acks(plan, state, call, granted);
                it.check_servers(plan, state, call);
            }
        });
    });
    true
}

/// Returns whether a process was killed, so that its code has no effect any more.
pub(super) fn is_dead(process: usize) -> bool {
    sim().look(|state| state.processes[process].dead)
}

/// Returns whether a lock that is not valid was lost, and not released.
pub(super) fn is_lost(lock: &LockHandle) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(lock.lost()).poll(&mut context).is_ready()
}

impl Future for Watched {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.judge_poll();
        let done = self.work.as_mut().poll(context);
        if done.is_ready()
            && let Some(then) = self.then.take()
        {
            then();
        }
        done
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // The end of the history ends everything.
        if !is_dead(self.terms.process) {
            self.judge_end();
        }
    }
}
