//! Renewals: not too many, and early enough where the server tells of a change.

use super::calm::{arrives_by, keep_requests};
use super::noticed::BETWEEN_HINTS;
use super::{Ledger, Owning};
use crate::plan::{Plan, Topology, Weather};
use crate::world::{Fault, Kind, MILLI, Planned, State, TO_CONNECT, Write, slowest_segment};

/// A renewal follows its predecessor after a third of the ttl, or after a twelfth if it was passed on meanwhile. Either may
/// be late.
const SOONEST: u64 = 32;
/// The renewals of a lock with a shorter ttl are too close for that.
const SHORT: u64 = 900 * MILLI;
/// The first renewal of a lock with such a ttl comes late.
const LONG: u64 = 2_900 * MILLI;
/// So many renewals may be under way when the first of them is refused.
const AT_ONCE: u32 = 8;
/// Two renewals by hints are so far apart, and some time for the tasks of the process.
const BY_A_HINT: u64 = 350 * MILLI;

/// Returns whether a fault has kept requests of a process, all of which may arrive while the server lacks the right to watch a
/// key. A server that stands still reads them together.
fn keeps_hints(plan: &Plan) -> bool {
    let faults = plan.faults.iter();
    let denied = faults.filter(|it| it.fault.denies("CLIENT|CACHING"));
    let mut meetings = denied.flat_map(|denied| {
        let kept = (0..plan.processes.len()).flat_map(|process| keep_requests(plan, process));
        let is_a_stop = |it: &&Planned| matches!(it.fault, Fault::StopServer { .. });
        let kept = kept.chain(plan.faults.iter().filter(is_a_stop));
        kept.map(move |it| it.at < denied.end() && denied.at < arrives_by(it))
    });
    meetings.any(|meets| meets)
}

impl Ledger {
    /// Checks the writes of locks on one server, in a history whose network works.
    pub fn check_renewals(&mut self, plan: &Plan, state: &State) {
        let refused = state.hosts.iter().map(|host| host.server.refused_caching);
        if refused.max() > Some(AT_ONCE) && !keeps_hints(plan) {
            self.violates("a right is asked for again and again", "CLIENT CACHING");
        }
        // Each share lengthens the key of all of them, as `is_shared` has it.
        if plan.has_shares() {
            return;
        }
        let is_of_strangers = |fault: &Fault| {
            matches!(
                fault,
                Fault::Touch { .. } | Fault::Strike { .. } | Fault::Delete { .. }
            )
        };
        let is_calm = plan.faults.iter().all(|it| is_of_strangers(&it.fault)) && !plan.stops_inside;
        // Where tasks pass a lock on very often, the process looks for others by renewing it.
        let is_crowded = plan.weather == Weather::Crowd;
        // A watched lock is renewed at once.
        let is_watched = self.calls.iter().any(|call| call.watched);
        // An order raises the mark above the clock, so an acquire needs a second command, which lengthens the key. A ticket
        // is a change from outside, and a hint follows it.
        let is_ordered = plan.has_orders();
        if plan.topology != Topology::One
            || !is_calm
            || is_crowded
            || is_watched
            || is_ordered
            || plan.has_stops()
        {
            return;
        }
        for key in 0..plan.keys {
            let writes = state.hosts[0].writes.iter().filter(|it| it.key == key);
            let writes: Vec<&Write> = writes.collect();
            // A renewal may be followed by one by a hint, and that by none for a while.
            let in_a_row = match plan.has(|fault| matches!(fault, Fault::Touch { .. })) {
                true => 3,
                false => 2,
            };
            self.check_pauses(plan, state, &writes, in_a_row);
            // An older server watches no key.
            if plan.version.redis >= (7, 0, 5) {
                self.check_notice(plan, &writes);
            }
        }
    }

    fn check_pauses(&mut self, plan: &Plan, state: &State, writes: &[&Write], in_a_row: usize) {
        let own: Vec<&&Write> = writes.iter().filter(|it| !it.is_strange).collect();
        for (index, row) in own.windows(in_a_row).enumerate() {
            let (before, renewals) = (row[0], &row[1..]);
            let renewal = renewals[renewals.len() - 1];
            let are_renewals = renewals
                .iter()
                .all(|it| it.kind == Kind::Lengthened && it.value == before.value);
            // A lock that was handed over has a shorter end, and its waiter may have asked at the same time.
            // An acquire may have waited for its connection for long, and the first renewal counts from the question.
            let is_first = before.kind == Kind::Set
                && before.lasts >= renewal.lasts / 8 * 7
                && renewal.lasts > LONG;
            // A call inside of the lock has asked for a longer ttl. If the lock ends soon, the answer to that renewal may come
            // too late for it, and the lock is renewed again.
            let around = &own[index.saturating_sub(1)..index + in_a_row];
            let is_longer = around
                .windows(2)
                .any(|it| it[0].value == it[1].value && it[1].lasts > it[0].lasts / 8 * 9);
            if !are_renewals || is_longer || !(is_first || before.kind == Kind::Lengthened) {
                continue;
            }
            // The process may have sent a renewal on a new connection before it noticed that the server watches no key for
            // that one yet.
            let is_repeated = state.has_dialed(
                before.at.saturating_sub(plan.segments(TO_CONNECT)),
                before.at,
            );
            let mut pause = renewal.lasts / SOONEST;
            if renewals.len() > 1 {
                let hints = BETWEEN_HINTS.saturating_sub(slowest_segment(plan.latency));
                pause = pause.min(hints);
            }
            let is_soon = renewal.lasts > SHORT && renewal.at - before.at < pause;
            if is_soon && !is_repeated && !self.is_shared(plan, renewal) {
                self.violates(
                    "a lock is renewed too soon",
                    format!("{before:?}, {renewal:?}"),
                );
            }
        }
    }

    /// Returns whether a share may have entered by this write, which lengthens the key of all shares. There are readers beside
    /// several keys, too.
    fn is_shared(&self, plan: &Plan, write: &Write) -> bool {
        self.calls.iter().any(|it| {
            let arrives = it.answered.map_or(u64::MAX, |over| over + plan.segments(1));
            it.owning != Owning::Alone
                && it.keys.contains(&write.key)
                && (it.asked..=arrives).contains(&write.at)
        })
    }

    /// Checks that an owner whose key was deleted stops soon, if its lock was renewed before. A lock without renewals has one at
    /// most, which confirms that it was handed over.
    fn check_notice(&mut self, plan: &Plan, writes: &[&Write]) {
        let latest = BY_A_HINT + 8 * slowest_segment(plan.latency);
        for (place, pair) in writes.windows(2).enumerate() {
            let (before, deletion) = (pair[0], pair[1]);
            // A waiter that was given the key asks, which lengthens it, too.
            let mut earlier = writes[..place].iter().rev();
            let given = earlier.find(|it| it.kind != Kind::Lengthened && it.value == before.value);
            let asks = plan.segments(4);
            if given.is_some_and(|given| before.at < given.at + asks) {
                continue;
            }
            let is_deleted = deletion.kind == Kind::Gone && deletion.is_strange;
            // Two renewals by hints have a pause between.
            if !is_deleted || before.kind != Kind::Lengthened || before.is_strange {
                continue;
            }
            let owners = self.values.iter().filter(|it| *it.1 == before.value);
            let calls: Vec<usize> = owners.map(|it| *it.0).collect();
            let late = self.claims.iter().find(|claim| {
                calls.contains(&claim.call)
                    && self.calls[claim.call].renews
                    && claim.until > deletion.at + latest
            });
            if let Some(claim) = late {
                let text = format!("{deletion:?}, {claim:?}: {}", self.show(claim.call));
                self.violates("a deletion is noticed late", text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calm, world};
    use super::*;
    use crate::world::{SECOND, Ways};

    #[test]
    fn a_right_is_asked_for_often_only_by_requests_that_a_fault_has_kept() {
        // So many requests of a connection lack the right from second 2 to second 3. A fault keeps those of process 0 until this
        // second.
        let is_broken_by = |kept: Fault, refused: u32, until: u64| {
            let mut plan = calm();
            let server = 0;
            let command = "CLIENT|CACHING".to_owned();
            let denies = Fault::Deny { server, command };
            for (from, to, fault) in [(2, 3, denies), (0, until, kept)] {
                let (at, lasts) = (from * SECOND, (to - from) * SECOND);
                plan.faults.push(Planned { at, lasts, fault });
            }
            let sim = world();
            sim.change(|state| state.hosts[0].server.refused_caching = refused);
            sim.judge(Ledger::default(), &plan, Ledger::check_renewals)
                .contains(&"a right is asked for again and again")
        };
        let (process, server, ways) = (0, 0, Ways::Both);
        let holds = Fault::Hold {
            process,
            server,
            ways,
        };
        for kept in [holds, Fault::StopServer { server }] {
            let is_broken = |refused, until| is_broken_by(kept.clone(), refused, until);
            assert!(!is_broken(9, 2));
            assert!(is_broken(9, 1));
            assert!(!is_broken(8, 1));
        }
    }
}
