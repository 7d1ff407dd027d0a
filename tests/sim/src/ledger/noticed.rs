//! An owner notices soon that its key was deleted.

use super::{Call, Claim, Ledger};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{Fault, Kind, MILLI, Planned, SECOND, State, Write};

/// Two renewals by hints are so far apart at least.
pub(super) const BETWEEN_HINTS: u64 = 250 * MILLI;
/// After a reconnection the keys are watched again.
const WATCHES_AGAIN: u64 = 2 * SECOND;
/// The first renewal of a process connects. It waits for a look at the sentinels that is on its way, and for its own.
const LOOKS: u64 = 2;

impl Ledger {
    /// Checks the time from the loss of a key to the loss of its owner.
    pub fn check_noticed(&mut self, plan: &Plan, state: &State) {
        // In a cluster a loss is one of the keys of a node only.
        let is_of_some = matches!(plan.topology, Topology::Redlock | Topology::Cluster);
        if plan.has_stops() || is_of_some {
            return;
        }
        let losses = plan.faults.iter();
        let losses = losses.filter(|it| it.fault.loses_data() && it.fault != restart());
        // A former master has no keys of owners.
        let has_keys = |it: &&Planned| it.fault.server() == Some(state.service.master_at(it.at));
        let losses = losses.filter(has_keys);
        for loss in losses.cloned() {
            for claim in 0..self.claims.len() {
                let it = &self.claims[claim];
                let limit = match &loss.fault {
                    Fault::Delete { key, .. } if lock_name(it.key).as_bytes() == key => {
                        self.notices_within(plan, it, loss.at)
                    }
                    Fault::Flush { .. } => self.notices_a_flush_within(plan, it, loss.at),
                    _ => continue,
                };
                let is_its = it.from + plan.segments(1) < loss.at;
                // The first renewal of a process connects.
                let process = self.calls[it.call].process;
                let limit = limit + state.connects_for(plan, process, loss.at, it.until);
                if is_its && self.calls[it.call].renews && it.until > loss.at + limit {
                    if self.is_disturbed(plan, it, loss.at, limit) {
                        continue;
                    }
                    let ms = (it.until - loss.at) as f64 / 1e6;
                    let it = self.show_claim(it);
                    self.violates("an owner notices a loss late", format!("{ms:.3} ms: {it}"));
                }
            }
        }
    }

    /// The same for a key that a stranger deletes right behind a renewal, whose answer may arrive together with the hint.
    pub fn check_strikes(&mut self, plan: &Plan, state: &State) {
        if plan.has_stops() || plan.topology != Topology::One || plan.has_shares() {
            return;
        }
        let is_strike = |it: &&Write| it.kind == Kind::Gone && it.is_strange;
        for strike in state.hosts[0].writes.iter().filter(is_strike) {
            let late = self.claims.iter().find(|claim| {
                let limit = self.notices_within(plan, claim, strike.at);
                let is_its = claim.key == strike.key && claim.from + plan.segments(1) < strike.at;
                is_its
                    && self.calls[claim.call].renews
                    && claim.until > strike.at + limit
                    && !self.is_disturbed(plan, claim, strike.at, limit)
            });
            if let Some(claim) = late {
                let text = format!("{strike:?}: {}", self.show_claim(claim));
                self.violates("an owner notices a loss late", text);
            }
        }
    }

    /// The next renewal finds it out, and a key that was renewed before is watched.
    fn notices_within(&self, plan: &Plan, claim: &Claim, lost: u64) -> u64 {
        let call = &self.calls[claim.call];
        let interval = (call.ttl / 3).min(10 * SECOND);
        let renewal = interval + interval / 100 + plan.segments(4);
        let first = match call.watched {
            true => plan.segments(4),
            false => renewal,
        };
        let unwatched = |fault: &Fault| {
            let ends = matches!(fault, Fault::EndConnections { .. } | Fault::Cut { .. });
            ends.then_some(WATCHES_AGAIN)
        };
        // A renewal that is refused does not watch.
        let refuses = |fault: &Fault| match unwatched(fault) {
            Some(_) => None,
            None => fault.disturbs(),
        };
        // A connection that was refused the hints asks for none any more.
        let has_hints = !plan
            .faults
            .iter()
            .any(|it| it.fault.denies("CLIENT|CACHING") && it.at <= lost);
        // PostgreSQL tells no client of a change.
        let is_watched = claim.from + first < lost
            && plan.topology != Topology::Postgres
            && has_hints
            && plan.version.redis >= (7, 0, 5)
            && !plan.touches(call.process, (lost, lost), unwatched)
            && !plan.touches(call.process, (claim.from, lost), refuses);
        match is_watched {
            true => renewal.min(BETWEEN_HINTS + plan.segments(4)),
            false => renewal,
        }
    }

    /// The server tells every client.
    fn notices_a_flush_within(&self, plan: &Plan, claim: &Claim, lost: u64) -> u64 {
        match hears_no_flush(plan, self.calls[claim.call].process, lost) {
            true => self.notices_within(plan, claim, lost),
            false => plan.segments(4) + LOOKS * 3 * plan.far,
        }
    }

    /// The time by which a waiter is served, where the key is free since `free`: a flush has met a lock whose owner is not told of
    /// it, and notices it at the next renewal. The message about the flush has come before the answer of the lock, or the
    /// connection that brings it had just ended.
    pub(super) fn flushed_unheard_until(&self, plan: &Plan, waiter: &Call, free: u64) -> u64 {
        let flushes = plan.faults.iter();
        let flushes = flushes.filter(|it| matches!(it.fault, Fault::Flush { .. }));
        let owners = self.calls.iter().filter(|it| it.keys == waiter.keys);
        let noticed = owners.filter_map(|it| {
            let (granted, left) = (it.answered?, it.left?);
            let last_known = flushes.clone().filter_map(|flush| {
                let heard = flush.at..=flush.end() + plan.segments(1);
                let asks = granted.saturating_sub(plan.segments(6));
                let is_amid = asks <= *heard.end() && flush.at <= granted;
                let is_over = granted < flush.at && flush.at < left;
                let is_unheard = is_over && hears_no_flush(plan, it.process, flush.at);
                let known = if is_amid { granted } else { flush.at };
                (heard.contains(&free) && (is_amid || is_unheard)).then_some(known)
            });
            let notices = last_known.max()? + (it.ttl / 3).min(10 * SECOND) * 101 / 100;
            Some(notices.min(left) + plan.segments(4))
        });
        noticed.max().unwrap_or(0)
    }

    /// Returns whether the owner may not hear the server at the time.
    fn is_disturbed(&self, plan: &Plan, claim: &Claim, lost: u64, limit: u64) -> bool {
        let process = self.calls[claim.call].process;
        let span = (lost.saturating_sub(plan.segments(4)), lost + limit);
        plan.touches(process, span, |fault| fault.disturbs())
    }
}

/// Returns whether a process is not told of a flush: its connections have just ended, or PostgreSQL tells no client.
fn hears_no_flush(plan: &Plan, process: usize, flushed: u64) -> bool {
    let unheard = |fault: &Fault| {
        let ends = matches!(fault, Fault::EndConnections { .. } | Fault::Cut { .. });
        ends.then_some(SECOND)
    };
    plan.topology == Topology::Postgres || plan.touches(process, (flushed, flushed), unheard)
}

fn restart() -> Fault {
    Fault::Restart {
        server: 0,
        keeps_data: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calls, calm, owns, with, world};
    use super::super::{Answer, Owning};
    use super::*;

    /// The rules that are broken where the server is flushed at second 4, an owner notices it so many milliseconds later, and
    /// this process has connected meanwhile.
    fn broken(noticed: u64, connects: Option<usize>) -> Vec<&'static str> {
        let mut plan = with(Fault::Flush { server: 0 });
        plan.faults[0].at = 4 * SECOND;
        (plan.latency, plan.habits.blocks, plan.ttls) = (MILLI, 0, vec![60_000]);
        let mut ledger = Ledger::default();
        owns(&mut ledger, Owning::Alone, 1, 2, 4);
        ledger.claims[0].until = 4 * SECOND + noticed * MILLI;
        let sim = world();
        sim.add_process(0);
        sim.change(|state| {
            state.now = 4 * SECOND;
            if let Some(process) = connects {
                state.dial(process, 0);
            }
        });
        sim.judge(ledger, &plan, Ledger::check_noticed)
    }

    #[test]
    fn an_owner_notices_a_flush_later_where_its_process_connects_first() {
        let rule = "an owner notices a loss late";
        let (usual, connected) = (4 * 42, 18 * 42);
        assert!(broken(usual - 10, None).is_empty());
        assert_eq!(broken(usual + 10, None), [rule]);
        assert!(broken(usual + 10, Some(0)).is_empty());
        assert_eq!(broken(usual + 10, Some(1)), [rule]);
        assert_eq!(broken(connected + 10, Some(0)), [rule]);
    }

    /// The rules that are broken where a release of the second lock of a process takes so many milliseconds.
    fn broken_by_a_release(takes: u64, connects: bool) -> Vec<&'static str> {
        let mut plan = calm();
        (plan.topology, plan.replicas) = (Topology::Replicas, vec![0]);
        (plan.latency, plan.habits.blocks) = (MILLI, 0);
        let mut ledger = Ledger::default();
        for (at, takes) in [(2, 1), (4, takes)] {
            let it = calls(&mut ledger, Owning::Alone, Some(0), at, Some(at));
            (it.answer, it.left) = (Answer::Granted, Some(at * SECOND));
            it.released = Some(at * SECOND + takes * MILLI);
        }
        let sim = world();
        sim.change(|state| {
            state.now = 4 * SECOND;
            if connects {
                state.dial(0, 0);
            }
        });
        sim.judge(ledger, &plan, Ledger::check_releases)
    }

    #[test]
    fn a_release_takes_longer_where_its_process_connects_first() {
        let rule = "a release waits for replicas";
        let usual = 4 * 42 + 20;
        assert!(broken_by_a_release(usual - 10, false).is_empty());
        assert_eq!(broken_by_a_release(usual + 10, false), [rule]);
        assert!(broken_by_a_release(usual + 10, true).is_empty());
        assert_eq!(broken_by_a_release(18 * 42 + 30, true), [rule]);
    }
}
