//! Faults behind which a key may be free for a while, because its waiters are not told.

use super::unheard::LAST_RESORT;
use crate::plan::{Plan, Topology};
use crate::world::{Fault, MILLI, SECOND};

/// The end of the last fault, and of what follows it, that may leave the key free between two times.
pub(super) fn excused(plan: &Plan, from: u64, to: u64) -> u64 {
    let longest = plan.ttls.iter().max().map_or(0, |ttl| ttl * MILLI);
    let ends = plan.faults.iter().filter(|it| it.at <= to).map(|planned| {
        let after = match &planned.fault {
            // A release that was refused, and waiters that were not served, are looked after in a second.
            Fault::Refuse { .. } | Fault::Deny { .. } | Fault::SpoilMark { .. } => 1_300 * MILLI,
            Fault::EndConnections { .. } | Fault::StopReplica { .. } => SECOND,
            Fault::Flush { .. } if plan.topology == Topology::Postgres => LAST_RESORT,
            // The owners are told of it at once, and the waiters ask a second later.
            Fault::Flush { .. } => 1_300 * MILLI,
            Fault::Delete { key, .. } if key.starts_with(b"lockkit:!") => LAST_RESORT,
            // A process that has ended, or stands still, notices nothing.
            Fault::Delete { .. }
                if plan.ends() > 0 || plan.habits.unrenewed || plan.has_stops() =>
            {
                LAST_RESORT
            }
            // The waiters are in the row.
            Fault::Delete { .. } if plan.topology == Topology::Postgres => LAST_RESORT,
            Fault::Delete { .. } => (longest / 3).min(10 * SECOND) * 101 / 100,
            _ => return 0,
        };
        planned.end() + after
    });
    ends.max().unwrap_or(0).clamp(from, to.max(from))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calls, with, world};
    use super::super::{Answer, Ledger, Owning};
    use super::*;
    use crate::plan::lock_name;

    #[test]
    fn on_postgresql_a_waiter_is_not_told_that_the_row_of_its_lock_is_deleted() {
        let broken = |topology: Topology, answered: u64| {
            let key = lock_name(0).into_bytes();
            let mut plan = with(Fault::Delete {
                server: 0,
                key: key.clone(),
            });
            plan.topology = topology;
            (plan.ttls, plan.latency, plan.habits.blocks) = (vec![9_000], MILLI, 0);
            (plan.faults[0].at, plan.faults[0].lasts) = (4 * SECOND, MILLI);
            let mut ledger = Ledger::default();
            calls(&mut ledger, Owning::Alone, None, 3, Some(answered)).answer = Answer::Granted;
            let sim = world();
            sim.change(|state| {
                state.now = 50 * SECOND;
                let lives = vec![(2 * SECOND, Some(4 * SECOND))];
                state.hosts[0].lives.insert(key, lives);
            });
            sim.judge(ledger, &plan, Ledger::check_waits)
        };
        let rule = "a call waits beside a free key";
        assert!(broken(Topology::One, 7).is_empty());
        assert_eq!(broken(Topology::One, 9), [rule]);
        assert!(broken(Topology::Postgres, 34).is_empty());
        assert_eq!(broken(Topology::Postgres, 37), [rule]);
    }
}
