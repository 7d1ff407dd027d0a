//! How much longer than its wait a call may last.

use super::Call;
use crate::plan::{Plan, Topology};
use crate::world::{Fault, SECOND};

/// The longest time of a call beyond its wait.
const OVERTIME: u64 = 6 * SECOND;

/// How much longer than its wait a call may last.
pub(super) fn overtime(plan: &Plan, call: &Call) -> u64 {
    let known = plan.topology.is_alone();
    if !plan.is_connected() || !plan.has_exact_waits() || !known || call.asked < SECOND {
        return OVERTIME;
    }
    let drift = call.wait.unwrap_or(0) / 100;
    // On PostgreSQL, a server that takes no writes is left for another one, or for itself behind a pause.
    let breaks = |fault: &Fault| {
        let ends = match fault {
            Fault::EndConnections { .. } => true,
            Fault::Refuse { .. } => plan.topology == Topology::Postgres,
            _ => false,
        };
        ends.then_some(SECOND)
    };
    let span = call.span();
    let reconnects = match plan.touches(call.process, span, breaks) {
        true => SECOND,
        false => 0,
    };
    // Replicas that have stopped are waited for, by the question that is under way when the wait ends, and by the last one.
    let timeout = plan.processes[call.process].operation_timeout;
    let stops = plan.has(|fault| matches!(fault, Fault::StopReplica { .. }));
    let replicas = match (plan.topology, stops) {
        (Topology::Replicas, true) => 2 * timeout,
        (Topology::Replicas, false) => timeout,
        _ => 0,
    };
    drift + reconnects + replicas + plan.segments(8)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asks, with};
    use super::super::{Ledger, Owning};
    use super::*;
    use crate::world::MILLI;

    #[test]
    fn two_questions_of_a_wait_are_delayed_by_replicas_that_have_stopped() {
        let timeout = 500 * MILLI;
        let beside = |fault: Fault| {
            let mut plan = with(fault);
            plan.topology = Topology::Replicas;
            plan.processes[0].operation_timeout = timeout;
            let mut ledger = Ledger::default();
            let call = asks(&mut ledger, Owning::Alone, Some(300 * MILLI), 2, Some(3));
            overtime(&plan, &ledger.calls[call])
        };
        let stopped = beside(Fault::StopReplica { replica: 1 });
        let usual = beside(Fault::StepClock { server: 0, by: -1 });
        assert_eq!(stopped - usual, timeout);
    }
}
