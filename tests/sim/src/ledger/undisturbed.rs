//! When no fault has an effect, so that promises about time are exact.

use crate::plan::Plan;
use crate::world::{Fault, LAST, LONGEST_STOP, MILLI, Planned, SECOND, slowest_segment};

/// The time in which a manager may still be connecting.
pub(super) const START: u64 = SECOND;
/// How long after a fault its effects last.
const AFTERMATH: u64 = 2 * SECOND;

/// Returns whether no fault but those that are spared has an effect between two times.
pub(super) fn is_quiet(
    plan: &Plan,
    from: u64,
    to: u64,
    is_spared: impl Fn(&Fault) -> bool,
) -> bool {
    let stops = plan.stops_inside && from < LAST + LONGEST_STOP;
    let disturbs =
        |it: &Planned| !is_spared(&it.fault) && it.at <= to && from <= effect_ends(it) + AFTERMATH;
    !stops && !plan.faults.iter().any(disturbs)
}

/// The time in which a message arrives and its receiver acts, while no fault has an effect.
pub(super) fn promptly(plan: &Plan) -> u64 {
    let lag = plan.replicas.iter().max().unwrap_or(&0);
    100 * MILLI + 4 * slowest_segment(plan.latency) + 2 * lag
}

/// Returns whether a process may stand still shortly before a time.
pub(super) fn may_stop_before(plan: &Plan, time: u64) -> bool {
    let stops =
        |it: &Planned| it.fault.is_a_stop() && it.at <= time && time <= it.end() + 200 * MILLI;
    plan.stops_inside && time < LAST + LONGEST_STOP || plan.faults.iter().any(stops)
}

fn effect_ends(planned: &Planned) -> u64 {
    match planned.fault {
        // A connection that was made meanwhile hears no push until it is replaced.
        Fault::Deny { ref command, .. } if command == "SUBSCRIBE" => u64::MAX / 2,
        // The process stays dead, which disturbs no other one.
        Fault::Kill { .. } => planned.at,
        _ => planned.end(),
    }
}
