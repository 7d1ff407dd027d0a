//! Waiters that the server refuses to serve, and whose releaser ends before it can ask again.
//!
//! A release that may delete the key, but not serve its waiters, is followed by checks of the process that has released it.
//! No other process looks after these waiters: they ask when the lease would have ended.

use super::unheard::LAST_RESORT;
use super::{Call, Ledger};
use crate::plan::Plan;
use crate::server::Refusal;
use crate::world::{Fault, MILLI, Planned, State};

/// A process asks the server again so long after a refusal.
const AGAIN: u64 = 1_300 * MILLI;

impl Ledger {
    /// Until when the waiters of a key may not be served, because a process that has ended has left them so.
    ///
    /// A waiter that comes later asks for the first time.
    pub(super) fn unserved_until(&self, plan: &Plan, state: &State, key: usize, asked: u64) -> u64 {
        let spans = refusals(plan);
        let processes = 0..plan.processes.len();
        let ends = processes.filter_map(|it| Some((it, ended(plan, state, it)?)));
        let leaves_unserved = |(process, end): &(usize, u64)| {
            let span = spans.iter().find(|(from, to)| (from..=to).contains(&end));
            span.is_some_and(|span| self.releases_within(*process, key, span))
        };
        let left = ends.filter(leaves_unserved).map(|(_, end)| end);
        let ends = left.chain(forgets_a_waiter(plan));
        let last = ends.filter(|end| asked < *end).max();
        last.map_or(0, |end| end + LAST_RESORT)
    }

    /// Since when a call, or one behind which it stands in the line of its process, waits for a key. The process asks for the
    /// first of them only.
    pub(super) fn in_line_since(&self, call: &Call, key: usize) -> u64 {
        let ahead = self.calls.iter().filter(|it| {
            it.process == call.process
                && it.keys.contains(&key)
                && it.asked <= call.asked
                && it.answered.is_none_or(|answered| answered > call.asked)
        });
        ahead.map(|it| it.asked).min().unwrap_or(call.asked)
    }

    /// Returns whether a process had a release of the key under way at some time of a span.
    fn releases_within(&self, process: usize, key: usize, (from, to): &(u64, u64)) -> bool {
        self.calls.iter().any(|it| {
            let begins = it.left.or(it.answered).unwrap_or(u64::MAX);
            let is_its = it.process == process && it.keys.contains(&key);
            is_its && begins <= *to && it.ended.is_none_or(|ended| ended >= *from)
        })
    }
}

/// When a process ends before the others.
fn ended(plan: &Plan, state: &State, process: usize) -> Option<u64> {
    let ended = state.processes.get(process).and_then(|it| it.ended);
    ended.or(plan.processes[process].leaves)
}

/// The spans in which a server may refuse to serve waiters, up to the next check behind each.
fn refusals(plan: &Plan) -> Vec<(u64, u64)> {
    let refuses = |fault: &Fault| {
        matches!(
            fault,
            Fault::Refuse { .. } | Fault::Deny { .. } | Fault::SpoilMark { .. }
        )
    };
    let planned = plan.faults.iter().filter(|it| refuses(&it.fault));
    let mut spans: Vec<(u64, u64)> = Vec::new();
    // In the order of their begins.
    for (from, to) in planned.map(|it| (it.at, it.end() + AGAIN)) {
        match spans.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => spans.push((from, to)),
        }
    }
    spans
}

/// The ends of spans in which a server that has taken a waiter from the queue can neither tell it of the key, nor put it
/// back.
fn forgets_a_waiter(plan: &Plan) -> impl Iterator<Item = u64> {
    let cannot_keep = |it: &Fault| it.denies("ZADD") || it.refuses_as(Refusal::OutOfMemory);
    let faults = plan.faults.iter();
    let untold = faults.filter(|it| it.fault.denies("PUBLISH"));
    untold.flat_map(move |untold| {
        let others = plan.faults.iter();
        let others = others.filter(move |it| cannot_keep(&it.fault));
        let meets = |it: &&Planned| it.at <= untold.end() && untold.at <= it.end();
        others.filter(meets).map(|it| it.end().min(untold.end()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::asks;
    use super::*;
    use crate::world::SECOND;

    #[test]
    fn a_call_is_in_the_line_of_its_process_since_the_first_that_still_waits() {
        for (process, key, answered, since) in [
            (0, 0, Some(5), 1),
            (0, 0, None, 1),
            (0, 0, Some(3), 3),
            (1, 0, Some(5), 3),
            (0, 1, Some(5), 3),
        ] {
            let mut ledger = Ledger::default();
            let first = asks(&mut ledger, Owning::Alone, None, 1, answered);
            ledger.calls[first].process = process;
            ledger.calls[first].keys = vec![key];
            let call = asks(&mut ledger, Owning::Alone, None, 3, None);
            let it = &ledger.calls[call];
            assert_eq!(ledger.in_line_since(it, 0), since * SECOND);
        }
    }
}
