//! Which faults may touch a process, and for how long.

use super::Plan;
use crate::world::{Fault, MILLI, SECOND, slowest_segment};

impl Plan {
    /// The longest time of so many segments that no fault delays.
    pub fn segments(&self, count: u64) -> u64 {
        let lag = self.replicas.iter().max().copied().unwrap_or(0);
        // A step is short, and there may be many ready tasks.
        count * (slowest_segment(self.latency) + lag) + 2 * MILLI
    }

    /// Returns whether a fault of this kind touches a process between two times. What it has caused may last longer by `after`.
    pub fn touches(
        &self,
        process: usize,
        (from, to): (u64, u64),
        after: impl Fn(&Fault) -> Option<u64>,
    ) -> bool {
        self.faults.iter().any(|planned| {
            let its = planned.fault.process().is_none_or(|it| it == process);
            its && after(&planned.fault)
                .is_some_and(|after| planned.at <= to && from <= planned.end() + after)
        })
    }

    /// Returns whether the network delivers everything at once, and the server answers all the time.
    pub fn is_connected(&self) -> bool {
        self.faults.iter().all(|planned| {
            matches!(
                planned.fault,
                Fault::EndConnections { .. }
                    | Fault::ForgetScripts { .. }
                    | Fault::Refuse { .. }
                    | Fault::Deny { .. }
                    | Fault::StepClock { .. }
                    | Fault::Kill { .. }
                    | Fault::Stop { .. }
                    | Fault::Block { .. }
                    | Fault::Flush { .. }
                    | Fault::Delete { .. }
                    | Fault::StopReplica { .. }
                    | Fault::Gone { .. }
                    | Fault::SpoilMark { .. }
            )
        })
    }

    /// Returns whether a process may stand still at some time.
    pub fn has_stops(&self) -> bool {
        self.stops_processes() || self.habits.blocks > 0
    }

    /// How many processes end before their work does.
    pub fn ends(&self) -> usize {
        let all = 0..self.processes.len();
        all.filter(|process| self.ends_early(*process)).count()
    }
}

impl Fault {
    /// How long an owner or a caller may notice the fault beyond its end. `None`: it disturbs no request.
    pub fn disturbs(&self) -> Option<u64> {
        match self {
            Fault::Slow { .. }
            | Fault::Hold { .. }
            | Fault::HoldOthers { .. }
            | Fault::Freeze { .. }
            | Fault::Late { .. }
            | Fault::StopServer { .. } => Some(3 * SECOND),
            Fault::Stop { .. }
            | Fault::Block { .. }
            | Fault::Cut { .. }
            | Fault::EndConnections { .. }
            | Fault::Restart { .. }
            | Fault::StopReplica { .. }
            | Fault::Promote { .. }
            | Fault::Isolate { .. }
            | Fault::ResetSentinels
            | Fault::Crash { .. } => Some(2 * SECOND),
            Fault::Refuse { .. }
            | Fault::Deny { .. }
            | Fault::SpoilMark { .. }
            | Fault::OtherType { .. }
            | Fault::Spoil { .. } => Some(300 * MILLI),
            Fault::Kill { .. }
            | Fault::Halt { .. }
            | Fault::Stranger { .. }
            | Fault::ForgetScripts { .. }
            | Fault::Conflicts { .. }
            | Fault::StepClock { .. }
            | Fault::Flush { .. }
            | Fault::Delete { .. }
            | Fault::Strike { .. }
            | Fault::Touch { .. }
            | Fault::Dead { .. }
            | Fault::Gone { .. }
            | Fault::Repeat { .. }
            | Fault::MoveSlot { .. }
            | Fault::GiveWay { .. } => None,
        }
    }

    /// Returns whether the server refuses requests until an operator changes something.
    pub fn is_a_mistake(&self) -> bool {
        matches!(self, Fault::Deny { .. } | Fault::SpoilMark { .. })
    }
}
