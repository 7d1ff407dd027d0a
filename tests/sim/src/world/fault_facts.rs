//! Facts about a fault: its target, and what it may do to callers.

use super::MICRO;
use super::faults::Fault;
use crate::server::Refusal;

impl Fault {
    /// Returns whether data that the kit relies on is lost.
    ///
    /// A key whose set of shares is deleted lets no share in before its end.
    pub fn loses_data(&self) -> bool {
        match self {
            Fault::Delete { key, .. } => !key.starts_with(b"lockkit:!s"),
            Fault::Flush { .. } | Fault::Strike { .. } | Fault::Crash { .. } => true,
            Fault::Restart { keeps_data, .. } => !keeps_data,
            _ => false,
        }
    }

    /// Returns whether a process never goes on.
    pub fn is_death(&self) -> bool {
        matches!(self, Fault::Kill { .. } | Fault::Halt { .. })
    }

    /// Returns whether a process stands still for a while, or its runtime does.
    pub fn is_a_stop(&self) -> bool {
        matches!(self, Fault::Stop { .. } | Fault::Block { .. })
    }

    /// Returns whether the right to a command is missing.
    pub fn denies(&self, right: &str) -> bool {
        matches!(self, Fault::Deny { command, .. } if command == right)
    }

    /// Returns whether a server refuses for this reason.
    pub fn refuses_as(&self, reason: Refusal) -> bool {
        matches!(self, Fault::Refuse { refusal, .. } if *refusal == reason)
    }

    /// The length of a step of a server's clock.
    pub fn clock_step(&self) -> Option<u64> {
        match self {
            Fault::StepClock { by, .. } => Some(by.unsigned_abs() * MICRO),
            _ => None,
        }
    }

    /// Returns whether it is a change that callers do not see: nothing is refused or lost because of it.
    pub fn is_hidden(&self) -> bool {
        match self {
            Fault::MoveSlot { in_dispute, .. } => !in_dispute,
            Fault::GiveWay { .. } => true,
            _ => false,
        }
    }

    /// Returns whether keys go from one node of a cluster to another.
    pub fn moves_keys(&self) -> bool {
        matches!(self, Fault::MoveSlot { .. } | Fault::GiveWay { .. })
    }

    /// The server that the fault is about.
    pub fn server(&self) -> Option<usize> {
        let mut fault = self.clone();
        fault.server_mut().copied()
    }

    /// The same fault at another server.
    pub fn at(&self, server: usize) -> Self {
        let mut fault = self.clone();
        if let Some(place) = fault.server_mut() {
            *place = server;
        }
        fault
    }

    fn server_mut(&mut self) -> Option<&mut usize> {
        match self {
            Fault::Slow { server, .. }
            | Fault::Hold { server, .. }
            | Fault::Freeze { server, .. }
            | Fault::Cut { server, .. }
            | Fault::StopServer { server }
            | Fault::Restart { server, .. }
            | Fault::EndConnections { server }
            | Fault::ForgetScripts { server }
            | Fault::Refuse { server, .. }
            | Fault::Conflicts { server }
            | Fault::Deny { server, .. }
            | Fault::StepClock { server, .. }
            | Fault::Flush { server }
            | Fault::Delete { server, .. }
            | Fault::OtherType { server, .. }
            | Fault::Late { server, .. }
            | Fault::Repeat { server, .. }
            | Fault::Gone { server, .. }
            | Fault::SpoilMark { server, .. }
            | Fault::StopReplica { replica: server }
            | Fault::Promote { server }
            | Fault::Isolate { sentinel: server }
            | Fault::Strike { server, .. }
            | Fault::Touch { server, .. }
            | Fault::Spoil { server }
            | Fault::Dead { server, .. }
            | Fault::GiveWay { server }
            | Fault::Crash { server }
            | Fault::Stranger { server, .. } => Some(server),
            Fault::HoldOthers { .. }
            | Fault::Stop { .. }
            | Fault::Kill { .. }
            | Fault::Halt { .. }
            | Fault::Block { .. }
            | Fault::MoveSlot { .. }
            | Fault::ResetSentinels => None,
        }
    }

    /// Returns whether both are of one kind, at one process and server.
    pub fn has_the_target_of(&self, other: &Fault) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.server() == other.server()
            && self.process() == other.process()
    }

    /// The process that the fault is about.
    pub fn process(&self) -> Option<usize> {
        match self {
            Fault::Slow { process, .. }
            | Fault::Hold { process, .. }
            | Fault::HoldOthers { process, .. }
            | Fault::Freeze { process, .. }
            | Fault::Cut { process, .. }
            | Fault::Stop { process }
            | Fault::Kill { process }
            | Fault::Halt { process }
            | Fault::Block { process }
            | Fault::Late { process, .. }
            | Fault::Repeat { process, .. } => Some(*process),
            _ => None,
        }
    }
}
