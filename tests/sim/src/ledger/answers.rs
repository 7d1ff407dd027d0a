//! `Busy` is a fact, and an owner stops before its key ends.

use super::{Answer, Call, Ledger, Owning, replicas};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{Fault, MILLI, SECOND, State};

/// A process tells its callers the server's last answer to its waiter for so long.
const REMEMBERED: u64 = 100 * MILLI;
/// The two where callers do more than to take one key and to release it.
const REMEMBERED_BESIDE_OTHERS: u64 = 2 * SECOND;
const REMEMBERED_IN_TROUBLE: u64 = 12 * SECOND;
/// The longest pause between two renewals.
const LONGEST_PAUSE: u64 = 10 * SECOND;
/// A process that stands still may know less.
const STANDS_STILL: u64 = 11 * SECOND;

impl Ledger {
    /// Checks that a key was taken at some time of each call that was told `Busy`.
    pub fn check_busy(&mut self, plan: &Plan, state: &State) {
        // The clock of the server, by which keys end, says nothing about true time when it steps; on a quorum callers
        // that ask at once may get no majority.
        let steps = plan.steps_clocks();
        let is_exact = plan.has_exact_waits() && plan.topology != Topology::Cluster;
        // Without the queue no push ends the answer that a waiter remembers.
        let forgets = !is_exact && plan.has(|fault| matches!(fault, Fault::Delete { .. }));
        if steps || forgets || plan.topology == Topology::Redlock {
            return;
        }
        // An answer may be on its way for as long as its caller waits for it. Callers that come meanwhile share it.
        let slow = |process: usize| match plan.is_connected() {
            true => plan.segments(4),
            false => plan.processes[process].operation_timeout / 100 * 101 + plan.segments(4),
        };
        let remembered = |process: usize| match () {
            () if plan.has_shares() => STANDS_STILL,
            () if !is_exact => {
                match plan.faults.is_empty() && !plan.has_stops() && plan.ends() == 0 {
                    true => REMEMBERED_BESIDE_OTHERS,
                    false => REMEMBERED_IN_TROUBLE,
                }
            }
            () if plan.has_stops() => STANDS_STILL,
            // The end of the lock is pushed, or the waiter polls.
            () if plan.faults.is_empty() && plan.ends() == 0 => slow(process),
            () => REMEMBERED + slow(process),
        };
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let (Answer::Busy, Some(answered)) = (&call.answer, call.answered) else {
                continue;
            };
            if plan.ends_early(call.process) {
                continue;
            }
            let owned = self.claims.iter().any(|claim| {
                call.keys.contains(&claim.key)
                    && claim.from <= answered
                    && call.asked <= claim.until
            });
            // A wait ends with the answer to a question of after its end.
            let last = match call.wait {
                Some(wait) if is_exact && plan.is_connected() && !plan.has_stops() => {
                    (wait - wait / 100).saturating_sub(plan.segments(4))
                }
                _ => 0,
            };
            let remembered = remembered(call.process);
            let mut taken = call.keys.iter().flat_map(|key| spans(state, *key));
            let taken = taken.any(|(from, until)| {
                let is_remembered = call.asked + last <= until + remembered;
                let is_told = || is_remembered || self.owner_asks_nothing(call, until, remembered);
                from <= answered && is_told()
            });
            if !owned && !taken {
                self.violates("busy though the key was free", self.show(number));
            }
        }
    }

    /// Returns whether a task of the process has a guard that it does not look at, and the process learns by the next renewal
    /// that the key was gone at this time.
    fn owner_asks_nothing(&self, call: &Call, gone: u64, trip: u64) -> bool {
        self.claims.iter().any(|claim| {
            let owner = &self.calls[claim.call];
            // The key may have gone while the owner's answer was on its way.
            let since = gone.max(claim.from);
            let notices = since + (owner.ttl / 3).min(LONGEST_PAUSE) * 101 / 100 + trip;
            owner.process == call.process
                && call.keys.contains(&claim.key)
                && owner.asked <= gone
                && owner.left.is_none_or(|left| left >= call.asked)
                && call.asked <= notices
        })
    }

    /// Checks the owner's deadline against the end of its key at the server, in true time, at one look of the owner.
    pub fn check_deadline(&mut self, plan: &Plan, state: &State, call: usize, remaining: u64) {
        let steps = plan.steps_clocks();
        // A node of a quorum that has lost its data does not vote for as long as a lock may last.
        let loses = plan.has(Fault::loses_data);
        let it = &self.calls[call];
        if loses || steps || state.thawed {
            return;
        }
        let ppm = state.processes[it.process].ppm as f64;
        let believes = remaining as f64 / (1.0 + ppm / 1e6);
        if it.owning != Owning::Alone {
            // A set of shares that is deleted is as lost as its key.
            if !plan.has(|fault| matches!(fault, Fault::Delete { .. })) {
                self.check_share_ends(plan, state, call, believes);
            }
            return;
        }
        for key in it.keys.clone() {
            self.check_deadline_of(plan, state, call, key, believes);
        }
    }

    fn check_deadline_of(
        &mut self,
        plan: &Plan,
        state: &State,
        call: usize,
        key: usize,
        believes: f64,
    ) {
        // A body may begin, and a task may go on with a lease, long after a server has confirmed it.
        let confirmed = (state.now + believes as u64).saturating_sub(self.calls[call].ttl);
        let since = confirmed.min(self.calls[call].asked);
        self.check_master(plan, state, call, believes);
        let left = match plan.topology {
            Topology::One | Topology::Postgres => Some(left(state, 0, key)),
            Topology::Replicas | Topology::Sentinel => replicas::lives(plan, state, key, since),
            // A node that the slot has left may still have a key that is over.
            Topology::Cluster => state.masters().map(|it| left(state, it, key)).max(),
            Topology::Redlock => Some(left_at_majority(plan, state, key)),
        };
        let Some(left) = left else { return };
        let left = left.max(0);
        if believes > left as f64 && !self.may_not_have_heard(plan, call, state.now) {
            let text = format!(
                "it believes for {:.6} s, the servers have the key for {:.6} s, at {:.6}: {}",
                believes / 1e9,
                left as f64 / 1e9,
                state.now as f64 / 1e9,
                self.show(call)
            );
            self.violates("an owner believes longer than its key lives", text);
        }
    }
}

/// For how long a server still has a key, in true time.
pub(super) fn left(state: &State, server: usize, key: usize) -> i64 {
    let name = lock_name(key);
    let entry = state.hosts[server].server.entry(name.as_bytes());
    let ends = entry.and_then(|entry| entry.ends);
    // A key is there to the end of its last millisecond.
    ends.map_or(0, |ends| state.true_time_left(server, ends + 1))
}

/// The same for a majority, which another owner needs.
fn left_at_majority(plan: &Plan, state: &State, key: usize) -> i64 {
    let servers = plan.servers;
    let mut lefts: Vec<i64> = (0..servers).map(|it| left(state, it, key)).collect();
    lefts.sort_unstable();
    lefts[servers / 2]
}

/// The spans of true time in which a server had a key. After a failover there may be two masters for a while.
pub(super) fn spans(state: &State, key: usize) -> Vec<(u64, u64)> {
    spans_at(state, 0..state.hosts.len(), key)
}

/// The spans of true time in which one of these servers had a key.
pub(super) fn spans_at(
    state: &State,
    servers: impl IntoIterator<Item = usize>,
    key: usize,
) -> Vec<(u64, u64)> {
    spans_of(state, servers, &lock_name(key))
}

/// The spans of true time in which one of these servers had a key of this name.
pub(super) fn spans_of(
    state: &State,
    servers: impl IntoIterator<Item = usize>,
    name: &str,
) -> Vec<(u64, u64)> {
    let hosts = servers.into_iter().map(|server| &state.hosts[server]);
    let lives = hosts.filter_map(|host| host.lives.get(name.as_bytes()));
    let lives = lives.flat_map(|lives| {
        lives.iter().enumerate().filter_map(|(at, (from, until))| {
            let next = lives.get(at + 1).map_or(u64::MAX, |next| next.0);
            until.map(|until| (*from, until.min(next)))
        })
    });
    let mut lives: Vec<_> = lives.collect();
    lives.sort_unstable();
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for (from, until) in lives {
        match spans.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(until),
            _ => spans.push((from, until)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asks, owns};
    use super::*;
    use crate::world::SECOND;

    #[test]
    fn an_owner_whose_key_went_before_its_answer_learns_it_by_its_first_renewal() {
        let mut ledger = Ledger::default();
        owns(&mut ledger, Owning::Alone, 7, 4, 9);
        let owner = &mut ledger.calls[0];
        (owner.asked, owner.ttl) = (2 * SECOND, 6 * SECOND);
        let call = asks(&mut ledger, Owning::Alone, Some(0), 6, Some(6));
        let mut asks_nothing = |asked: u64, gone: u64| {
            ledger.calls[call].asked = asked;
            ledger.owner_asks_nothing(&ledger.calls[call], gone, 0)
        };
        assert!(asks_nothing(6 * SECOND, 3 * SECOND));
        assert!(!asks_nothing(6 * SECOND, SECOND));
        assert!(!asks_nothing(6 * SECOND + SECOND / 10, 3 * SECOND));
    }
}
