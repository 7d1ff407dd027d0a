//! A process of the model, with its waiter, its lease and its pending releases.
//!
//! The real [`Lease`] and the real [`Anchor`] make every decision about time.

use std::time::Duration;

use super::fault::ModelFault;
use super::message::{AcquireReply, Name, Push};
use super::server::Value;
use crate::base::clock::{Moment, ServerTime};
use crate::base::token::Token;
use crate::lease::Refusal;
use crate::lease::backoff::{LONGEST, ask_again_after};
use crate::lease::deadline::{Anchor, GRANT};
use crate::lease::{Lease, LeaseOptions};

/// The bounds of a cohort. The real bounds are more passes in less time.
pub(super) const MOST: u8 = 2;
pub(super) const LONGEST_COHORT: Duration = Duration::from_millis(1_500);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) alive: bool,
    /// The first waiter of this process, which asks the store.
    pub(super) waiter: Option<WaitingTask>,
    pub(super) owned: Option<OwnedLease>,
    /// The number of tasks that wait behind it.
    pub(super) line: u8,
    /// The number of tasks that ever waited behind it.
    pub(super) joined: u8,
    /// Tokens with pending releases, the newest last, with their fencing tokens. The flag tells
    /// whether the next lease may supersede the token.
    pub(super) unreleased: Vec<(Name, Option<u64>, bool)>,
    /// Releases to send a second time, because a request of the lease was never answered.
    pub(super) late_duplicates: Vec<LateDuplicate>,
    /// Whether the lease that is to cool down had an unanswered request.
    pub(super) cools_with_late_duplicate: bool,
    /// When to check on a key that this process has handed over.
    pub(super) handed_over_until: Option<Moment>,
    /// The number of leases that were begun.
    pub(super) begun: u8,
}

/// A release that is sent a second time, later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LateDuplicate {
    pub(super) name: Name,
    pub(super) fence: Option<u64>,
    pub(super) at: Moment,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SentRequest {
    pub(super) sent: Moment,
    pub(super) round: u8,
    pub(super) queue: bool,
    known_before: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WaitingTask {
    pub(super) name: Name,
    pub(super) lease: Lease,
    pub(super) asked: Option<SentRequest>,
    pub(super) rounds: u8,
    pub(super) known: bool,
    pub(super) late_duplicate: bool,
    anchor: Option<Anchor>,
    news: Option<Push>,
    /// When to ask without a push.
    pub(super) until: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OwnedLease {
    pub(super) name: Name,
    pub(super) lease: Lease,
    pub(super) fence: u64,
    pub(super) late_duplicate: bool,
    pub(super) granted: Moment,
    /// How often the lease was passed on.
    pub(super) passes: u8,
    /// The moment and the ttl of a renewal that waits for its answer.
    pub(super) extending: Option<(Moment, u64)>,
    /// Whether a nested body has requested a longer ttl.
    pub(super) served: bool,
}

impl OwnedLease {
    pub(super) fn is_valid(&self, now: Moment) -> bool {
        !self.lease.remaining(now).is_zero()
    }
}

/// The reaction of a waiter to an answer or a push.
pub(super) enum NextMove {
    Waits,
    Asks,
    Holds(OwnedLease),
    /// The waiter has found a record.
    Ends,
}

impl Process {
    pub(super) fn new() -> Self {
        Self {
            alive: true,
            waiter: None,
            owned: None,
            line: 0,
            joined: 0,
            unreleased: Vec::new(),
            late_duplicates: Vec::new(),
            cools_with_late_duplicate: false,
            handed_over_until: None,
            begun: 0,
        }
    }

    /// Returns whether this process has a task for a push with this token.
    pub(super) fn knows(&self, name: Name) -> bool {
        self.waiter.as_ref().is_some_and(|one| one.name == name)
            || self.owned.as_ref().is_some_and(|one| one.name == name)
            || self.unreleased.iter().any(|(one, ..)| *one == name)
    }

    pub(super) fn leaves(&mut self, name: Name, fence: Option<u64>, may_be_superseded: bool) {
        self.forget(name);
        self.unreleased.push((name, fence, may_be_superseded));
    }

    pub(super) fn forget(&mut self, name: Name) {
        self.unreleased.retain(|(one, ..)| *one != name);
    }

    /// Forgets all pending releases, because a grant proves that they have ended.
    pub(super) fn forget_all(&mut self) {
        self.unreleased.clear();
    }

    pub(super) fn to_supersede(&self) -> Option<(Name, Option<u64>)> {
        let (name, fence, may_be_superseded) = self.unreleased.last()?;
        may_be_superseded.then_some((*name, *fence))
    }
}

impl WaitingTask {
    pub(super) fn new(name: Name, options: LeaseOptions) -> Self {
        Self {
            name,
            lease: Lease::new(options),
            asked: None,
            rounds: 0,
            known: false,
            late_duplicate: false,
            anchor: None,
            news: None,
            until: Moment::FAR,
        }
    }

    /// Returns whether the waiter expects the answer to this request.
    pub(super) fn is_waiting_for(&self, round: u8, fault: Option<ModelFault>) -> bool {
        self.asked.is_some_and(|request| {
            request.round == round || fault == Some(ModelFault::AnswerToEarlierRequest)
        })
    }

    /// Sends a request.
    pub(super) fn asks(&mut self, queue: bool, now: Moment) {
        self.rounds += 1;
        self.anchor = None;
        self.news = None;
        self.until = Moment::FAR;
        self.asked = Some(SentRequest {
            sent: now,
            round: self.rounds,
            queue,
            known_before: std::mem::replace(&mut self.known, true),
        });
    }

    /// Gives the request up.
    pub(super) fn gives_up(&mut self, fault: Option<ModelFault>) {
        if self.asked.take().is_some() && fault != Some(ModelFault::LateDuplicateForgotten) {
            self.late_duplicate = true;
        }
    }

    pub(super) fn answered(
        &mut self,
        request: SentRequest,
        answer: AcquireReply,
        now: Moment,
        fault: Option<ModelFault>,
    ) -> NextMove {
        self.asked = None;
        match answer {
            AcquireReply::Granted(fence) => {
                if !self.lease.grant(request.sent, now) {
                    return NextMove::Asks;
                }
                NextMove::Holds(self.owned(fence, now))
            }
            AcquireReply::Busy(Value::Done(_), ..) => {
                self.known = request.queue || request.known_before;
                NextMove::Ends
            }
            AcquireReply::Busy(..) if !request.queue => {
                self.known = request.known_before;
                NextMove::Asks
            }
            AcquireReply::Busy(value, left, server, stands) => {
                let local = if fault == Some(ModelFault::AnchorFromAnswer) {
                    now
                } else {
                    request.sent
                };
                let server = ServerTime(server);
                self.anchor = Some(Anchor { local, server });
                let refusal = Refusal {
                    cooling: false,
                    record: None,
                    remaining: Some(Duration::from_millis(left)),
                    queued: stands,
                    pushed: stands && value != Value::ForeignOwner,
                    shared: false,
                    full: None,
                    server_time: Some(server),
                };
                // All waiters poll with the same jitter, because the model's tokens are no random
                // numbers.
                let token = Token::parse(&format!("{:016x}/{:032x}", 0, 0)).expect("a token");
                self.until = now + ask_again_after(&refusal, token, 0);
                match self.news.take() {
                    // It may be from before the refusal.
                    Some(Push::HandedOver(..)) => NextMove::Asks,
                    Some(news) => self.hears(news, now, fault),
                    None => NextMove::Waits,
                }
            }
        }
    }

    pub(super) fn hears(&mut self, news: Push, now: Moment, fault: Option<ModelFault>) -> NextMove {
        if self.asked.is_some() {
            // A hand-over is kept until the waiter has asked.
            if !matches!(self.news, Some(Push::HandedOver(..))) {
                self.news = Some(news);
            }
            return NextMove::Waits;
        }
        match news {
            Push::Next(_, after) => {
                self.until = now + Duration::from_millis(after).min(LONGEST);
                NextMove::Waits
            }
            Push::HandedOver(_, fence, ends) => {
                let longest = self.lease.ttl().min(GRANT);
                let ends = ServerTime(ends * 1_000);
                let deadline = self.anchor.and_then(|anchor| {
                    wrong_deadline(anchor, ends, now, fault)
                        .or_else(|| anchor.deadline(ends, now, longest))
                });
                match deadline {
                    Some(deadline) if self.lease.take_over(deadline, now) => {
                        NextMove::Holds(self.owned(fence, now))
                    }
                    _ => NextMove::Asks,
                }
            }
        }
    }

    /// Turns the waiter's lease into an owned lease.
    fn owned(&mut self, fence: u64, now: Moment) -> OwnedLease {
        OwnedLease {
            name: self.name,
            lease: self.lease.clone(),
            fence,
            late_duplicate: self.late_duplicate,
            granted: now,
            passes: 0,
            extending: None,
            served: false,
        }
    }
}

fn wrong_deadline(
    anchor: Anchor,
    ends: ServerTime,
    heard: Moment,
    fault: Option<ModelFault>,
) -> Option<Moment> {
    let span = Duration::from_micros(ends.0.checked_sub(anchor.server.0)?);
    let rounding = Duration::from_millis(2);
    match fault? {
        ModelFault::NoDriftMargin => Some(anchor.local + span.saturating_sub(rounding)),
        ModelFault::DriftMarginForGrantOnly => {
            Some(anchor.local + span.saturating_sub(GRANT / 100 + rounding))
        }
        ModelFault::DeadlineFromPush => Some(heard + GRANT.saturating_sub(GRANT / 100 + rounding)),
        _ => None,
    }
}

impl OwnedLease {
    /// Passes the lease to the next task of this process.
    pub(super) fn pass(
        &mut self,
        options: LeaseOptions,
        now: Moment,
        fault: Option<ModelFault>,
    ) -> Option<Self> {
        let bounded = self.passes >= MOST || now >= self.granted + LONGEST_COHORT;
        if bounded && fault != Some(ModelFault::PassedWithoutBound) {
            return None;
        }
        let lease = match self.lease.pass(options, now) {
            Some(lease) => lease,
            None if fault == Some(ModelFault::PassedAfterEnd) => {
                let mut lease = Lease::new(options);
                lease.grant(now, now).then_some(lease)?
            }
            None => return None,
        };
        Some(Self {
            name: self.name,
            lease,
            fence: self.fence + 1,
            late_duplicate: self.late_duplicate,
            granted: self.granted,
            passes: self.passes + 1,
            extending: None,
            served: false,
        })
    }

    /// Records the answer to a renewal; returns `true` if the lease is lost.
    pub(super) fn renewed(
        &mut self,
        sent: Moment,
        answer: crate::lease::Extended,
        options: LeaseOptions,
        now: Moment,
        fault: Option<ModelFault>,
    ) -> bool {
        self.extending = None;
        let lost = self.lease.renewed(sent, answer, now);
        if fault == Some(ModelFault::RenewalCountsForNewerTtl)
            && answer == crate::lease::Extended::Yes
            && !lost
            && self.served
        {
            let mut longer = Lease::new(options);
            if longer.grant(sent, now) {
                self.lease = longer;
            }
        }
        lost
    }
}
