//! Compares the promises with the events of a round.
//!
//! The ledger knows when each call was asked and answered, when an owner claimed the lock, which keys existed
//! and which faults there were. It knows nothing else about locks.

mod claims;
mod refusals;
mod tests;
mod waits;

use std::time::Duration;

use super::calls::{self, Call};
use super::fault::{Fault, Scope};
use super::journal::Entry;
use super::plan::{Plan, Topology};
use super::watch::Look;

/// The time that a busy machine may add to any time.
const SLACK: u64 = 1_000 * MILLI;
/// The time after a fault in which a worker may still be recovering. Connections are made again, and a worker
/// remembers an outage for a while.
const RECOVERY: u64 = 2_500 * MILLI;
const MILLI: u64 = 1_000_000;

/// A fault and its time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) fault: Fault,
}

/// A time in which a process did not run.
#[derive(Debug, Clone, Copy)]
struct Hiccup {
    worker: usize,
    from: u64,
    until: u64,
}

/// All records of a round.
pub(super) struct Account {
    plan: Plan,
    begin: u64,
    calls: Vec<Call>,
    spans: Vec<Span>,
    hiccups: Vec<Hiccup>,
    looks: Vec<Vec<Look>>,
}

impl Account {
    pub(super) fn of(
        plan: &Plan,
        begin: u64,
        entries: &[Entry],
        spans: Vec<Span>,
        looks: Vec<Vec<Look>>,
    ) -> Account {
        let hiccups = entries.iter().filter(|entry| entry.words[0] == "hiccup");
        let hiccups = hiccups.map(|entry| Hiccup {
            worker: entry.who.worker,
            from: entry.time,
            until: entry.time + entry.number(1) * MILLI,
        });
        let hiccups = hiccups.collect();
        Account {
            plan: plan.clone(),
            begin,
            calls: calls::of(entries),
            spans,
            hiccups,
            looks,
        }
    }

    /// Counts the requests for a lock and the grants.
    pub(super) fn counts(&self) -> (usize, usize) {
        let granted = self.calls.iter().filter(|call| call.claim.is_some());
        (self.calls.len(), granted.count())
    }

    /// Describes every violation of a promise.
    pub(super) fn check(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for key in 0..self.plan.keys.len() {
            wrong.extend(self.two_at_once(key));
            wrong.extend(self.tokens_that_fall(key));
        }
        wrong.extend(self.losses());
        wrong.extend(self.refusals());
        wrong.extend(self.waits());
        wrong
    }

    /// Returns whether a fault or the machine may have disturbed the worker between two times.
    fn is_disturbed(&self, worker: usize, from: u64, until: u64) -> bool {
        // A worker that no fault has stopped was stopped by the machine, which may have stopped the servers too.
        let hiccup = self
            .hiccups
            .iter()
            .filter(|it| it.from <= until && from <= it.until + SLACK)
            .any(|it| it.worker == worker || !self.is_faulty(it.worker, it.from, it.until));
        hiccup || self.is_faulty(worker, from, until)
    }

    /// Returns whether the call's lock may have run out instead of being released.
    ///
    /// A call whose body has ended returns its result also if the server refuses the release.
    fn may_run_out(&self, call: &Call) -> bool {
        let disturbed = |at| self.is_disturbed(call.who.worker, at, at);
        call.released.is_none_or(disturbed)
    }

    /// Returns whether a fault may have disturbed the worker, including the time of recovery.
    fn is_faulty(&self, worker: usize, from: u64, until: u64) -> bool {
        let now = |span: &&Span| span.from <= until && from <= span.until + RECOVERY;
        let mut nodes = Vec::new();
        if self.plan.topology == Topology::Redlock {
            // Until its ttl ends, a repeated proposal of an old lease may take the vote of this node from every owner.
            let twice = self.spans.iter().filter(|span| span.from <= until);
            nodes.extend(twice.filter_map(|span| match span.fault {
                Fault::Twice { node, .. } => Some(node),
                _ => None,
            }));
        }
        for span in self.spans.iter().filter(now) {
            match span.fault.scope() {
                Scope::Nobody => {}
                Scope::Worker(of) if of != worker => {}
                Scope::Link(of, _) if of != worker => {}
                Scope::Worker(_) => return true,
                // The replica matters only to workers that wait for it.
                Scope::Node(1)
                    if self.plan.topology == Topology::Replicas && self.plan.replica_acks == 0 => {}
                Scope::Node(node) | Scope::Link(_, node) => nodes.push(node),
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        // A minority of a quorum may be missing.
        nodes.len()
            >= if self.plan.topology == Topology::Redlock {
                2
            } else {
                1
            }
    }

    /// Formats a time relative to the plan.
    fn at(&self, time: u64) -> String {
        format!(
            "{} ms",
            (i128::from(time) - i128::from(self.begin)) / i128::from(MILLI)
        )
    }

    fn show(&self, call: &Call) -> String {
        let who = call.who;
        let wait = call
            .wait
            .map_or("for ever".to_owned(), |wait| format!("{} ms", wait / MILLI));
        let claim = call.claim.map_or(String::new(), |claim| {
            format!(
                ", inside from {} to {} with {}",
                self.at(claim.from),
                self.at(claim.until),
                claim.fence
            )
        });
        let answered = call
            .answered
            .map_or("never".to_owned(), |time| self.at(time));
        format!(
            "worker {} life {} task {} call {}: key {}, ttl {} ms, wait {wait}, asked {}, answered {answered}: {:?}{claim}",
            who.worker,
            who.life,
            who.task,
            call.number,
            call.key,
            call.ttl / MILLI,
            self.at(call.asked),
            call.answer
        )
    }

    /// Formats a span of time.
    fn lasting(&self, from: u64, until: u64) -> String {
        format!(
            "from {} to {}, {:?}",
            self.at(from),
            self.at(until),
            Duration::from_nanos(until - from)
        )
    }
}
