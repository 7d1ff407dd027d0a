//! The seeded faults of the server. Each changes what goes into a step of the protocol, or what comes out of it.

use super::fault::ModelFault;
use super::server::{ModelServer, Surroundings};
use crate::base::token::Token;
use crate::lease::cohort::MOST;
use crate::protocol::{Closed, Hold, News, Operation, Phase, Push, Reply, Waited, Way};

/// Runs an operation with a fault.
pub(super) fn run(
    server: &mut ModelServer,
    operation: &Operation,
    beside: &Surroundings<'_>,
    fault: ModelFault,
) -> (Reply, Vec<Push>) {
    let before = server.clone();
    let mut read = operation.clone();
    server.reads_wrongly(&mut read, fault);
    let beside = Surroundings {
        listens: match fault {
            ModelFault::HandedToDeadProcess => &|_| true,
            _ => beside.listens,
        },
        ..*beside
    };
    let (mut reply, mut pushes) = server.step(&read, &beside);
    match operation {
        Operation::Acquire(_) => server.acquires_wrongly(&before, operation, &mut reply, &beside),
        _ => server.ends_wrongly(&before, operation, &mut pushes, fault),
    }
    server.notes_wrongly(&before, operation, fault);
    server.tells_wrongly(&mut pushes, fault);
    (reply, pushes)
}

impl ModelServer {
    /// Changes the operation, or the key before it.
    fn reads_wrongly(&mut self, operation: &mut Operation, fault: ModelFault) {
        let now = self.millis();
        let phase = &mut self.document.phase;
        let holder = match phase {
            Phase::Held(hold) => Some(hold.token),
            Phase::Closed(closed) => Some(closed.of),
            Phase::Free | Phase::Shared(_) => None,
        };
        let held_by = |token: Token| Phase::Held(Hold { token, ends: now });
        match operation {
            Operation::Acquire(ask) => match fault {
                ModelFault::HighWaterMarkNotRaised | ModelFault::SupersededWithoutHighWaterMark => {
                    ask.used = None
                }
                ModelFault::SupersedeDoesNotCompare if ask.replaces.is_some() => {
                    ask.replaces = holder;
                }
                ModelFault::QueuedBehindRecord => {
                    if let Phase::Closed(closed) = phase {
                        closed.record = None;
                    }
                }
                _ => {}
            },
            Operation::End(end) => match (fault, &end.way) {
                (ModelFault::HighWaterMarkNotRaised, _)
                | (ModelFault::GapWithoutHighWaterMark, Way::Vacate(_)) => end.fence = None,
                (ModelFault::GapHandedOver, Way::Vacate(_)) => end.way = Way::Release,
                (ModelFault::ReleaseDoesNotCompare, Way::Release)
                | (ModelFault::GapDoesNotCompare, Way::Vacate(_)) => {
                    end.token = holder.unwrap_or(end.token);
                }
                (ModelFault::RecordStoredIfAbsent, Way::Remember { .. }) if holder.is_none() => {
                    *phase = held_by(end.token);
                }
                (ModelFault::RecordDoesNotCompare, Way::Remember { .. })
                    if holder.is_some_and(|holder| holder != end.token) =>
                {
                    *phase = held_by(end.token);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// Changes the result of an acquire.
    fn acquires_wrongly(
        &mut self,
        before: &Self,
        operation: &Operation,
        reply: &mut Reply,
        beside: &Surroundings<'_>,
    ) {
        let Operation::Acquire(ask) = operation else {
            return;
        };
        let now = self.millis();
        match (beside.fault, &before.document.phase) {
            (Some(ModelFault::QueuedBehindRecord), phase @ Phase::Closed(_)) => {
                self.document.phase = phase.clone();
            }
            (Some(ModelFault::RepeatedAcquireDoesNotExtend), Phase::Held(held)) => {
                if let Some(hold) = self.document.hold_of(ask.token) {
                    hold.ends = match held.token == ask.token {
                        true => held.ends,
                        false => hold.ends,
                    };
                }
            }
            (Some(ModelFault::LateAcquireShortens), Phase::Held(held)) => {
                if let Some(hold) = self.document.hold_of(ask.token)
                    && held.token == ask.token
                {
                    hold.ends = now + ask.ttl;
                }
            }
            (Some(ModelFault::RefusedTicketBelieved), _) if beside.refuses_writes => {
                if let Reply::Busy(refused) = reply {
                    refused.queued = true;
                }
            }
            (Some(ModelFault::TicketsByClock), _) => {
                let queue = &mut self.document.queue;
                if queue.len() > before.document.queue.len()
                    && let Some(newcomer) = queue.last_mut()
                {
                    newcomer.waited = Waited::Since(self.micros);
                    queue.sort_by_key(|waiter| match waiter.waited {
                        Waited::Since(arrival) => arrival,
                        Waited::Asked(_) | Waited::Answered(_) => 0,
                    });
                }
            }
            _ => {}
        }
    }

    /// Changes the result of a renewal, or of an end.
    fn ends_wrongly(
        &mut self,
        before: &Self,
        operation: &Operation,
        pushes: &mut Vec<Push>,
        fault: ModelFault,
    ) {
        let now = self.millis();
        match (fault, operation) {
            (ModelFault::LateRenewalShortens, Operation::Extend { token, ttl }) => {
                if let Some(hold) = self.document.hold_of(*token) {
                    hold.ends = now + ttl;
                }
            }
            (ModelFault::CooldownKeepsToken, Operation::End(_)) => {
                if let Phase::Closed(Closed { of, until, .. }) = self.document.phase {
                    let (token, ends) = (of, until);
                    self.document.phase = Phase::Held(Hold { token, ends });
                }
            }
            (ModelFault::GapNotAnnounced, Operation::End(end)) => {
                if let Way::Vacate(_) = end.way {
                    pushes.clear();
                }
            }
            (ModelFault::RecordKeepsItsQueue, Operation::End(end)) => {
                if let Way::Remember { .. } = end.way {
                    self.document.queue.clone_from(&before.document.queue);
                    pushes.clear();
                }
            }
            _ => {}
        }
    }

    /// Changes the mark, where it was raised above the clock for a new lease.
    fn notes_wrongly(&mut self, before: &Self, operation: &Operation, fault: ModelFault) {
        let reported = match operation {
            Operation::Acquire(ask) => ask.used,
            Operation::End(end) => end.fence,
            _ => None,
        };
        let highest = before.mark.max(reported.unwrap_or(0));
        if self.mark > highest {
            self.mark = match fault {
                ModelFault::FutureTokenNotRecorded => highest,
                ModelFault::PassesNotReserved => self.mark - u64::from(MOST),
                _ => self.mark,
            };
        }
    }

    /// Changes the messages of a grant.
    fn tells_wrongly(&self, pushes: &mut Vec<Push>, fault: ModelFault) {
        let gave = pushes
            .iter()
            .any(|push| matches!(push.news, News::Given { .. }));
        if gave && fault == ModelFault::GrantNotAnnounced {
            pushes.retain(|push| !matches!(push.news, News::Next { .. }));
        }
        for push in pushes {
            if let News::Given { grant, fence } = &mut push.news {
                match fault {
                    ModelFault::EndReportedTooLate => *grant += 100,
                    ModelFault::GrantBelowHighWaterMark => *fence = self.micros,
                    _ => {}
                }
            }
        }
    }
}
