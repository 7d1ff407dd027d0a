//! When the servers and the network obey a caller at once, and until when a call may be in the way of others.

use super::{Answer, Call, Ledger};
use crate::plan::{Plan, Topology};
use crate::world::{
    Fault, Kind, LAST, LONGEST_STOP, MILLI, Planned, RETRANSMISSION, SECOND, State, Write,
    slowest_segment,
};

/// How long after a fault its effects last.
const AFTERMATH: u64 = 2 * SECOND;
/// A keeper looks for late copies of a request until then.
const LATE: u64 = 8 * SECOND;
/// A commit that does not wait for the disk is on it by then.
const FLUSHED: u64 = 600 * MILLI;

/// The segments that were kept arrive one by one, all of them within this time.
const ARRIVES: u64 = 20 * MILLI;

/// The trouble of a history.
pub(super) struct Calm {
    /// Nothing is late, but processes may die.
    pub(super) is_quiet: bool,
    /// From this time on nothing is late.
    pub(super) begins: u64,
    /// The time of a few requests.
    pub(super) slack: u64,
}

impl Calm {
    pub(super) fn of(plan: &Plan) -> Self {
        let is_quiet = !plan.stops_inside && !plan.has(|fault| !fault.is_death());
        let begins = match (is_quiet, plan.stops_inside) {
            (true, _) => 0,
            (_, true) => LAST + LONGEST_STOP + AFTERMATH,
            _ => plan.faults.iter().map(|it| it.end()).max().unwrap_or(0) + AFTERMATH,
        };
        Self {
            is_quiet,
            begins,
            slack: 10 * slowest_segment(plan.latency) + 20 * MILLI,
        }
    }
}

/// Returns whether the ledger can tell from the calls of others whether one was in the way: no clock of a server steps, and no
/// data is lost.
pub(super) fn calls_tell_all(plan: &Plan) -> bool {
    let steps = plan.steps_clocks();
    let deletes = plan.has(|fault| matches!(fault, Fault::Delete { .. } | Fault::Stranger { .. }));
    let empties = plan.topology == Topology::Redlock && plan.has(Fault::loses_data);
    !steps && !deletes && !empties && !plan.loses_data()
}

impl Ledger {
    /// Until when a call may be in the way of others, at the latest.
    pub(super) fn is_in_the_way_until(&self, plan: &Plan, calm: &Calm, number: usize) -> u64 {
        let call = &self.calls[number];
        let ttl = call.ttl + call.ttl / 50 + calm.slack;
        let dies = plan.dies(call.process);
        let undone = |time: u64| match dies {
            // It may have died before it could undo anything.
            Some(dies) if dies < time + calm.slack => time.max(dies) + ttl,
            _ if time >= calm.begins => time + calm.slack,
            _ => calm.begins + ttl + LATE,
        };
        match (&call.answer, call.left) {
            (Answer::None, _) => match dies {
                // It may have been granted at that moment, or while it was not polled.
                Some(dies)
                    if dies < call.asked + calm.slack
                        || call.goes_on.is_some()
                        || call.rests.is_some() =>
                {
                    dies + ttl
                }
                Some(dies) => dies,
                None => u64::MAX,
            },
            (Answer::Busy | Answer::Cancelled | Answer::NoTicket | Answer::Refused(_), _) => {
                undone(call.answered.unwrap_or(u64::MAX))
            }
            (Answer::Granted, Some(left)) => match call.released {
                Some(released) => {
                    let lost = match may_be_lost(plan, left, released) {
                        true => released + ttl,
                        false => released,
                    };
                    lost.max(late_copy_until(plan, call, released))
                        .max(left_in_line_until(plan, call, released, calm.slack))
                }
                None => undone(left),
            },
            (Answer::Lost | Answer::NotReleased(_) | Answer::RanOut, Some(left)) => {
                left.max(calm.begins) + ttl + LATE
            }
            (_, None) => self.last_look(call, number) + ttl,
        }
    }

    /// When an owner that never ended its lock has seen it last.
    fn last_look(&self, call: &Call, number: usize) -> u64 {
        let last = self.believed_until(number);
        last.or(call.answered).unwrap_or(call.asked)
    }

    /// When the owner of a call has seen last that it has its lock.
    pub(super) fn believed_until(&self, number: usize) -> Option<u64> {
        let of_call = self.claims.iter().filter(|claim| claim.call == number);
        of_call.map(|claim| claim.until).max()
    }

    /// The calls about each key.
    pub(super) fn calls_by_key(&self, plan: &Plan) -> Vec<Vec<usize>> {
        let mut by_key = vec![Vec::new(); plan.keys];
        for (number, call) in self.calls.iter().enumerate() {
            for key in &call.keys {
                by_key[*key].push(number);
            }
        }
        by_key
    }
}

/// Returns whether a crash of PostgreSQL may have lost a release, which does not wait for the disk.
pub(super) fn may_be_lost(plan: &Plan, left: u64, released: u64) -> bool {
    plan.topology == Topology::Postgres
        && plan.faults.iter().any(|it| {
            let is_crash = matches!(it.fault, Fault::Restart { .. });
            is_crash && left <= it.at && it.at <= released + FLUSHED
        })
}

/// Returns whether a crash of PostgreSQL has lost the last release of a key, and its lease is not over yet.
pub(super) fn is_brought_back(plan: &Plan, state: &State, key: usize) -> bool {
    let last = writes_on_postgres(state, key).last();
    last.is_some_and(|last| is_of_a_crash(plan, last) && last.at + last.lasts > state.now)
}

/// Until when a lease may have a key whose release a crash of PostgreSQL has lost. A clock that is set back makes it longer.
pub(super) fn brought_back_until(plan: &Plan, state: &State, key: usize) -> u64 {
    let back = writes_on_postgres(state, key).filter(|it| is_of_a_crash(plan, it));
    let longest = back.map(|it| it.at + it.lasts).max();
    let steps = plan.faults.iter().filter_map(|it| it.fault.clock_step());
    longest.map_or(0, |until| until + steps.sum::<u64>())
}

/// The spans in which leases have a key whose release a crash of PostgreSQL has lost.
pub(super) fn brought_back(
    plan: &Plan,
    state: &State,
    key: usize,
) -> impl Iterator<Item = (u64, u64)> {
    let back = writes_on_postgres(state, key).filter(|it| is_of_a_crash(plan, it));
    back.map(move |it| {
        let mut later = writes_on_postgres(state, key).filter(|next| next.at > it.at);
        let next = later.next().map_or(u64::MAX, |next| next.at);
        (it.at, next.min(it.at + it.lasts))
    })
}

fn writes_on_postgres(state: &State, key: usize) -> impl Iterator<Item = &Write> {
    let hosts = state.hosts.iter().filter(|it| it.postgres.is_some());
    let writes = hosts.flat_map(|host| &host.writes);
    writes.filter(move |it| it.key == key)
}

/// Returns whether a crash has undone what came behind this write.
fn is_of_a_crash(plan: &Plan, write: &Write) -> bool {
    let mut faults = plan.faults.iter();
    let crashes = |it: &Planned| matches!(it.fault, Fault::Restart { .. }) && it.at == write.at;
    write.kind != Kind::Gone && faults.any(crashes)
}

/// Returns until when a late copy of a call's request may have the key again, after the lock was released. A request behind one
/// that a fault keeps, on the same connection, arrives as late.
pub(super) fn late_copy_until(plan: &Plan, call: &Call, released: u64) -> u64 {
    let answered = call.answered.unwrap_or(released);
    let keeps = |it: &&Planned| it.at < answered && released < arrives_by(it);
    let copies = keep_requests(plan, call.process).filter(keeps);
    copies.map(|it| it.end() + LATE).max().unwrap_or(0)
}

/// The faults that keep requests of a process, which arrive behind them.
pub(super) fn keep_requests(plan: &Plan, process: usize) -> impl Iterator<Item = &Planned> {
    plan.faults.iter().filter(move |it| {
        let keeps = matches!(
            it.fault,
            Fault::Late { .. } | Fault::Freeze { .. } | Fault::Hold { .. } | Fault::Slow { .. }
        );
        keeps && it.fault.process() == Some(process)
    })
}

/// When the requests that a fault has kept have arrived. The sender tries again some time after the fault. On a slow link, the
/// last one takes up to one and a half times as long as the link is slow by.
pub(super) fn arrives_by(fault: &Planned) -> u64 {
    let keeps = match fault.fault {
        Fault::Slow { by, .. } => by + by / 2,
        _ => RETRANSMISSION,
    };
    fault.end() + keeps + ARRIVES
}

/// Returns until when an entry that a call has left in the queue may have the key, after its lock was released. Where replicas
/// acknowledge, each question of a waiter is for a lease of its own. Without the right to `ZREM` the server does not take the
/// one before from the queue, so the release gives it the key, which its process then gives back.
fn left_in_line_until(plan: &Plan, call: &Call, released: u64, slack: u64) -> u64 {
    let leaves = plan
        .faults
        .iter()
        .any(|it| it.fault.denies("ZREM") && it.at <= released && call.asked <= it.end());
    match plan.acks > 0 && call.wait != Some(0) && leaves {
        true => released + slack,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asks, calls, with, world, write};
    use super::super::{Ledger, Owning};
    use super::*;
    use crate::world::Ways;

    /// Until when a call of process 0, which was asked at second 1, granted at second 3 and released at this time, may be in the
    /// way of others beyond its release, beside a fault from second 1 to second 2.
    fn beyond(fault: Fault, acks: u16, wait: Option<u64>, released: u64) -> u64 {
        let mut plan = with(fault);
        plan.acks = acks;
        let mut ledger = Ledger::default();
        let number = asks(&mut ledger, Owning::Alone, wait, 1, Some(1));
        let call = &mut ledger.calls[number];
        call.answered = Some(released);
        (call.answer, call.left, call.released) = (Answer::Granted, Some(released), Some(released));
        let until = ledger.is_in_the_way_until(&plan, &Calm::of(&plan), number);
        until - released
    }

    #[test]
    fn a_copy_of_a_request_arrives_some_time_after_its_fault() {
        let freezes = |process| Fault::Freeze {
            process,
            server: 0,
            ways: Ways::Both,
        };
        let over = 2 * SECOND + RETRANSMISSION + ARRIVES;
        assert_ne!(beyond(freezes(0), 0, None, over - 1), 0);
        assert_eq!(beyond(freezes(0), 0, None, over), 0);
        assert_eq!(beyond(freezes(1), 0, None, over - 1), 0);
    }

    #[test]
    fn a_request_on_a_slow_link_arrives_some_time_after_the_fault() {
        let by = 600 * MILLI;
        let slow = |process| Fault::Slow {
            process,
            server: 0,
            by,
        };
        let over = 2 * SECOND + by + by / 2 + ARRIVES;
        assert_ne!(beyond(slow(0), 0, None, over - 1), 0);
        assert_eq!(beyond(slow(0), 0, None, over), 0);
        assert_eq!(beyond(slow(1), 0, None, over - 1), 0);
    }

    #[test]
    fn a_request_behind_one_on_a_slow_link_arrives_as_late() {
        let by = 600 * MILLI;
        let plan = with(Fault::Slow {
            process: 0,
            server: 0,
            by,
        });
        let over = 2 * SECOND + by + by / 2 + ARRIVES;
        let arrives = |asked: u64, released: u64| {
            let mut ledger = Ledger::default();
            let call = calls(&mut ledger, Owning::Alone, None, 2, Some(2));
            (call.asked, call.answered) = (asked, Some(released));
            late_copy_until(&plan, call, released) > 0
        };
        assert!(arrives(2 * SECOND + 100 * MILLI, over - 1));
        assert!(!arrives(2 * SECOND + 100 * MILLI, over));
    }

    #[test]
    fn an_entry_without_the_right_to_zrem_may_have_the_key_behind_its_call() {
        let denies = |command: &str| Fault::Deny {
            server: 0,
            command: command.to_owned(),
        };
        assert_ne!(beyond(denies("ZREM"), 1, None, 3 * SECOND), 0);
        assert_eq!(beyond(denies("ZREM"), 0, None, 3 * SECOND), 0);
        assert_eq!(beyond(denies("ZREM"), 1, Some(0), 3 * SECOND), 0);
        assert_eq!(beyond(denies("ZADD"), 1, None, 3 * SECOND), 0);
    }

    #[test]
    fn a_crash_of_postgresql_may_lose_the_releases_right_before_it() {
        let restart = Fault::Restart {
            server: 0,
            keeps_data: true,
        };
        let mut plan = with(restart);
        plan.topology = Topology::Postgres;
        let at = plan.faults[0].at;
        let may_be = |plan: &Plan, left, released| may_be_lost(plan, left, released);
        assert!(may_be(&plan, at - 2, at - 1));
        assert!(may_be(&plan, at, at + SECOND), "it is answered late");
        assert!(!may_be(&plan, at - SECOND, at - SECOND + 1));
        assert!(!may_be(&plan, at + 1, at + 2));
        plan.topology = Topology::One;
        assert!(!may_be(&plan, at - 2, at - 1));
    }

    /// Whether a lease that was written at this time in milliseconds, for five minutes, is one that a restart of the server at
    /// second 1 has brought back, where `then` comes behind it.
    fn brought_back(at: u64, then: Option<Kind>) -> bool {
        let plan = with(Fault::Restart {
            server: 0,
            keeps_data: true,
        });
        let write = |at, kind| write(at, kind, 300 * SECOND);
        let sim = world();
        sim.change(|state| {
            state.add_postgres(0);
            state.now = 60 * SECOND;
            let writes = &mut state.hosts[1].writes;
            writes.push(write(at * MILLI, Kind::Set));
            writes.extend(then.map(|kind| write(2 * SECOND, kind)));
        });
        sim.look(|state| {
            assert!(!is_brought_back(&plan, state, 1));
            assert_eq!(brought_back_until(&plan, state, 1), 0);
            let until = brought_back_until(&plan, state, 0);
            // Also where the key was written since.
            let expected = if at == 1_000 { 301 * SECOND } else { 0 };
            assert_eq!(until, expected);
            is_brought_back(&plan, state, 0)
        })
    }

    #[test]
    fn a_crash_brings_back_a_lease_whose_release_it_has_lost() {
        assert!(brought_back(1_000, None));
        assert!(!brought_back(999, None), "the crash did not write it");
        assert!(!brought_back(1_000, Some(Kind::Gone)));
        assert!(!brought_back(1_000, Some(Kind::Replaced)));
    }
}
