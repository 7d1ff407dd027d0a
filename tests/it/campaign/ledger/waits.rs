//! Checks that no waiter waits beside a free key of a healthy server, and that every call ends.

use super::{Account, MILLI, SLACK};
use crate::campaign::calls::Call;
use crate::campaign::fault::{Fault, Scope};

/// The time within which a waiter takes a free key.
const LONGEST: u64 = 2_000 * MILLI;
/// Two looks that are further apart prove nothing about the time between them.
const APART: u64 = 300 * MILLI;
/// The time beyond its wait that a call may need.
///
/// A call has a request at its beginning and one at its end, and may meet an outage in between.
const QUESTIONS: u64 = 5_000 * MILLI;

impl Account {
    pub(super) fn waits(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        // A lock that ran out with its killed process is free only when the store says so.
        let killed = self
            .spans
            .iter()
            .any(|it| matches!(it.fault, Fault::KillWorker { .. }));
        let longest = LONGEST + SLACK + if killed { 2_000 * MILLI } else { 0 };
        let forgets = self.spans.iter().any(|it| it.fault.loses_queues());
        for call in &self.calls {
            let Some(answered) = call.answered else {
                continue;
            };
            if let Some(wait) = call.wait {
                let stood = self.stood(call.who.worker, call.asked, answered);
                if answered - call.asked > wait + stood + QUESTIONS + SLACK {
                    wrong.push(format!("answered too late:\n    {}", self.show(call)));
                }
            }
            if forgets || call.wait.is_some_and(|wait| wait < longest) {
                continue;
            }
            if let Some((from, until)) = self.free(call, answered)
                && until - from > longest
            {
                let free = self.lasting(from, until);
                wrong.push(format!(
                    "waits beside a free key ({free}):\n    {}",
                    self.show(call)
                ));
            }
        }
        wrong
    }

    /// Returns how long a worker did not run in this time.
    fn stood(&self, worker: usize, from: u64, until: u64) -> u64 {
        let hiccups = self.hiccups.iter().filter(|it| it.worker == worker);
        hiccups
            .map(|it| it.until.min(until).saturating_sub(it.from.max(from)))
            .sum()
    }

    /// Returns the longest time within the call in which the key was free.
    ///
    /// In that time no other call had the key, all workers ran, and there was no fault.
    fn free(&self, call: &Call, answered: u64) -> Option<(u64, u64)> {
        let others = self
            .calls
            .iter()
            .filter(|it| it.key == call.key)
            .filter_map(|it| it.claim);
        let owned = others.map(|claim| (claim.from, claim.until));
        let faults = self
            .spans
            .iter()
            .filter(|it| it.fault.scope() != Scope::Nobody);
        let faulty = faults.map(|it| (it.from, it.until));
        let stood = self.hiccups.iter().map(|it| (it.from, it.until));
        let mut breaks: Vec<_> = owned.chain(faulty).chain(stood).collect();
        breaks.sort_unstable();
        let is_broken =
            |from: u64, until: u64| breaks.iter().any(|it| it.0 <= until && from <= it.1);

        let mut longest: Option<(u64, u64)> = None;
        let mut current: Option<(u64, u64)> = None;
        let looks = &self.looks[call.key];
        for look in looks
            .iter()
            .filter(|look| call.asked <= look.begun && look.ended <= answered)
        {
            let begins = current.map_or(look.begun, |it| it.1);
            let goes_on = look.taken == Some(false)
                && look.ended - begins <= APART
                && !is_broken(begins, look.ended);
            current = match current {
                Some((from, _)) if goes_on => Some((from, look.ended)),
                _ if look.taken == Some(false) && !is_broken(look.begun, look.ended) => {
                    Some((look.begun, look.ended))
                }
                _ => None,
            };
            let span = |it: Option<(u64, u64)>| it.map_or(0, |it| it.1 - it.0);
            if span(current) > span(longest) {
                longest = current;
            }
        }
        longest
    }
}
