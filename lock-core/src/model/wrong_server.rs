//! The seeded faults of the server. Each changes what goes into a step of the protocol, or what comes out of it.

use super::fault::ModelFault;
use super::server::{ModelServer, Surroundings};
use crate::lease::cohort::MOST;
use crate::protocol::{Closed, End, Hold, News, Operation, Phase, Push, Reply, Waited, Way};

/// Runs an operation with a fault.
pub(super) fn run(
    server: &mut ModelServer,
    operation: &Operation,
    beside: &Surroundings<'_>,
    fault: ModelFault,
) -> (Reply, Vec<Push>) {
    let mut before = server.clone();
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
    let (now, micros) = (server.millis(), server.micros);
    let reported = match operation {
        Operation::Acquire(ask) => ask.used,
        Operation::End(end) => end.fence,
        _ => None,
    };
    let highest = before.mark.max(reported.unwrap_or(0));
    let document = &mut server.document;
    match (fault, operation) {
        (ModelFault::QueuedBehindRecord, Operation::Acquire(_)) if before.document.has_record() => {
            document.phase = before.document.phase;
        }
        (
            ModelFault::RepeatedAcquireDoesNotExtend | ModelFault::LateAcquireShortens,
            Operation::Acquire(ask),
        ) => {
            let held = before.document.hold_of(ask.token);
            if let (Some(held), Some(hold)) = (held, document.hold_of(ask.token)) {
                hold.ends = match fault {
                    ModelFault::LateAcquireShortens => now + ask.ttl,
                    _ => held.ends,
                };
            }
        }
        (ModelFault::LateRenewalShortens, Operation::Extend { token, ttl }) => {
            if let Some(hold) = document.hold_of(*token) {
                hold.ends = now + ttl;
            }
        }
        (ModelFault::RefusedTicketBelieved, _) => {
            if let Reply::Busy(refused) = &mut reply {
                refused.queued |= beside.refuses_writes;
            }
        }
        (ModelFault::TicketsByClock, _) => {
            let queue = &mut document.queue;
            if queue.len() > before.document.queue.len()
                && let Some(mut newcomer) = queue.pop()
            {
                newcomer.waited = Waited::Since(micros);
                let place = queue.partition_point(
                    |other| matches!(other.waited, Waited::Since(arrival) if arrival <= micros),
                );
                queue.insert(place, newcomer);
            }
        }
        (ModelFault::CooldownKeepsToken, _) => {
            if let Phase::Closed(Closed { of, until, .. }) = document.phase {
                let (token, ends) = (of, until);
                document.phase = Phase::Held(Hold { token, ends });
            }
        }
        (ModelFault::GapNotAnnounced, Operation::End(end)) if is_gap(end) => pushes.clear(),
        (ModelFault::RecordKeepsItsQueue, Operation::End(end)) if is_record(end) => {
            document.queue = before.document.queue;
            pushes.clear();
        }
        (ModelFault::FutureTokenNotRecorded, _) => server.mark = server.mark.min(highest),
        (ModelFault::PassesNotReserved, _) if server.mark > highest => {
            server.mark -= u64::from(MOST);
        }
        (ModelFault::GrantNotAnnounced, _) if pushes.iter().any(is_grant) => {
            pushes.retain(is_grant);
        }
        (ModelFault::EndReportedTooLate | ModelFault::GrantBelowHighWaterMark, _) => {
            for push in &mut pushes {
                if let News::Given { grant, fence } = &mut push.news {
                    match fault {
                        ModelFault::EndReportedTooLate => *grant += 100,
                        _ => *fence = micros,
                    }
                }
            }
        }
        _ => {}
    }
    (reply, pushes)
}

impl ModelServer {
    /// Changes the operation, or the key before it.
    fn reads_wrongly(&mut self, operation: &mut Operation, fault: ModelFault) {
        let phase = &mut self.document.phase;
        let (holder, ends) = match phase {
            Phase::Held(hold) => (Some(hold.token), hold.ends),
            Phase::Closed(closed) => (Some(closed.of), closed.until),
            Phase::Free | Phase::Shared(_) => (None, u64::MAX),
        };
        match (fault, operation) {
            (
                ModelFault::HighWaterMarkNotRaised | ModelFault::SupersededWithoutHighWaterMark,
                Operation::Acquire(ask),
            ) => ask.used = None,
            (ModelFault::SupersedeDoesNotCompare, Operation::Acquire(ask)) => {
                ask.replaces = ask.replaces.and(holder);
            }
            (ModelFault::QueuedBehindRecord, Operation::Acquire(_)) => {
                if let Phase::Closed(closed) = phase {
                    closed.record = None;
                }
            }
            (ModelFault::HighWaterMarkNotRaised, Operation::End(end)) => end.fence = None,
            (ModelFault::GapWithoutHighWaterMark, Operation::End(end)) if is_gap(end) => {
                end.fence = None;
            }
            (ModelFault::GapHandedOver, Operation::End(end)) if is_gap(end) => {
                end.way = Way::Release;
            }
            (ModelFault::GapDoesNotCompare, Operation::End(end)) if is_gap(end) => {
                end.token = holder.unwrap_or(end.token);
            }
            (ModelFault::ReleaseDoesNotCompare, Operation::End(end)) => {
                if let Way::Release = end.way {
                    end.token = holder.unwrap_or(end.token);
                }
            }
            (
                ModelFault::RecordStoredIfAbsent | ModelFault::RecordDoesNotCompare,
                Operation::End(end),
            ) if is_record(end) => {
                let was_absent = fault == ModelFault::RecordStoredIfAbsent;
                if holder != Some(end.token) && holder.is_none() == was_absent {
                    let token = end.token;
                    *phase = Phase::Held(Hold { token, ends });
                }
            }
            _ => {}
        }
    }
}

fn is_gap(end: &End) -> bool {
    matches!(end.way, Way::Vacate(_))
}

fn is_record(end: &End) -> bool {
    matches!(end.way, Way::Remember { .. })
}

fn is_grant(push: &Push) -> bool {
    matches!(push.news, News::Given { .. })
}
