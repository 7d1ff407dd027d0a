//! A process of the model: one that wants the lock, one that has it, and what is being given back.
//! Every decision about time is the real [`Lease`]'s and the real [`Anchor`]'s.

use std::time::Duration;

use super::fault::Fault;
use super::server::{Answer, Push, Value};
use crate::base::clock::{Moment, ServerTime};
use crate::base::token::Token;
use crate::lease::Refusal;
use crate::lease::backoff::{LONGEST, ask_again_after};
use crate::lease::deadline::{Anchor, GRANT};
use crate::lease::{Lease, LeaseOptions};

/// A lease is passed on so often, and for so long. The real bounds are more passes in less time.
pub(super) const MOST: u8 = 2;
pub(super) const LONGEST_COHORT: Duration = Duration::from_millis(1_500);
/// A token: whose, and the which of its leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name {
    pub(super) process: u8,
    pub(super) lease: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) alive: bool,
    /// The first in line of this process, who asks the store.
    pub(super) waiter: Option<Waiter>,
    pub(super) tenure: Option<Tenure>,
    /// Tasks that stand behind it.
    pub(super) line: u8,
    /// How many ever did.
    pub(super) joined: u8,
    /// Tokens that are being given back, with their fencing tokens, the newest last; and whether the
    /// next one may step over them.
    pub(super) unreleased: Vec<(Name, Option<u64>, bool)>,
    /// Releases to send once more: a question of theirs was never answered.
    pub(super) twins: Vec<Twin>,
    /// Whether the lease that is to cool down has such a question.
    pub(super) cools_with_twin: bool,
    /// When to look after a key that this process has given away.
    pub(super) gave: Option<Moment>,
    /// Leases begun.
    pub(super) begun: u8,
}

/// A release that is sent once more, later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Twin {
    pub(super) name: Name,
    pub(super) fence: Option<u64>,
    pub(super) at: Moment,
}

/// A question that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) sent: Moment,
    pub(super) round: u8,
    pub(super) queue: bool,
    known_before: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Waiter {
    pub(super) name: Name,
    pub(super) lease: Lease,
    pub(super) asked: Option<Question>,
    pub(super) rounds: u8,
    pub(super) known: bool,
    pub(super) twin: bool,
    anchor: Option<Anchor>,
    news: Option<Push<Name>>,
    /// When to ask by oneself.
    pub(super) until: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tenure {
    pub(super) name: Name,
    pub(super) lease: Lease,
    pub(super) fence: u64,
    pub(super) twin: bool,
    pub(super) granted: Moment,
    /// How often the lease was passed on.
    pub(super) passes: u8,
    /// The instant and the ttl of a renewal that waits for its answer.
    pub(super) extending: Option<(Moment, u64)>,
    /// A nested body has asked for a longer ttl.
    pub(super) served: bool,
}

impl Tenure {
    pub(super) fn is_valid(&self, now: Moment) -> bool {
        !self.lease.remaining(now).is_zero()
    }
}

/// What a waiter makes of what it hears.
pub(super) enum Turn {
    Waits,
    Asks,
    Holds(Tenure),
}

impl Process {
    pub(super) fn new() -> Self {
        Self {
            alive: true,
            waiter: None,
            tenure: None,
            line: 0,
            joined: 0,
            unreleased: Vec::new(),
            twins: Vec::new(),
            cools_with_twin: false,
            gave: None,
            begun: 0,
        }
    }

    /// Whether a push for this token is for somebody here.
    pub(super) fn knows(&self, name: Name) -> bool {
        self.waiter.as_ref().is_some_and(|one| one.name == name)
            || self.tenure.as_ref().is_some_and(|one| one.name == name)
            || self.unreleased.iter().any(|(one, ..)| *one == name)
    }

    pub(super) fn leaves(&mut self, name: Name, fence: Option<u64>, steppable: bool) {
        self.forget(name);
        self.unreleased.push((name, fence, steppable));
    }

    pub(super) fn forget(&mut self, name: Name) {
        self.unreleased.retain(|(one, ..)| *one != name);
    }

    /// A grant proves that all before it have ended.
    pub(super) fn forget_all(&mut self) {
        self.unreleased.clear();
    }

    pub(super) fn to_step_over(&self) -> Option<(Name, Option<u64>)> {
        let (name, fence, steppable) = self.unreleased.last()?;
        steppable.then_some((*name, *fence))
    }
}

impl Waiter {
    pub(super) fn new(name: Name, terms: LeaseOptions) -> Self {
        Self {
            name,
            lease: Lease::new(terms),
            asked: None,
            rounds: 0,
            known: false,
            twin: false,
            anchor: None,
            news: None,
            until: Moment::FAR,
        }
    }

    /// Whether somebody waits for the answer to this question.
    pub(super) fn is_waiting_for(&self, round: u8, fault: Option<Fault>) -> bool {
        self.asked.is_some_and(|question| {
            question.round == round || fault == Some(Fault::AnswerToAnotherQuestion)
        })
    }

    /// A question goes out.
    pub(super) fn asks(&mut self, queue: bool, now: Moment) {
        self.rounds += 1;
        self.anchor = None;
        self.news = None;
        self.until = Moment::FAR;
        self.asked = Some(Question {
            sent: now,
            round: self.rounds,
            queue,
            known_before: std::mem::replace(&mut self.known, true),
        });
    }

    /// The question is given up.
    pub(super) fn gives_up(&mut self, fault: Option<Fault>) {
        if self.asked.take().is_some() && fault != Some(Fault::LateTwinIsForgotten) {
            self.twin = true;
        }
    }

    pub(super) fn answered(
        &mut self,
        question: Question,
        answer: Answer<Name>,
        now: Moment,
        fault: Option<Fault>,
    ) -> Turn {
        self.asked = None;
        match answer {
            Answer::Granted(fence) => {
                if !self.lease.grant(question.sent, now) {
                    return Turn::Asks;
                }
                Turn::Holds(self.tenure(fence, now))
            }
            Answer::Busy(..) if !question.queue => {
                self.known = question.known_before;
                Turn::Asks
            }
            Answer::Busy(value, left, server, stands) => {
                let local = if fault == Some(Fault::AnchorFromTheAnswer) {
                    now
                } else {
                    question.sent
                };
                let server = ServerTime(server);
                self.anchor = Some(Anchor { local, server });
                let refusal = Refusal {
                    cooling: false,
                    remaining: Some(Duration::from_millis(left)),
                    queued: stands,
                    pushed: stands && value != Value::Stranger,
                    server_time: Some(server),
                };
                // The same look for all of them: the tokens of the model are no random numbers.
                let token = Token::parse(&format!("{:016x}/{:032x}", 0, 0)).expect("a token");
                self.until = now + ask_again_after(&refusal, token, 0);
                match self.news.take() {
                    Some(news) => self.hears(news, now, fault),
                    None => Turn::Waits,
                }
            }
        }
    }

    pub(super) fn hears(&mut self, news: Push<Name>, now: Moment, fault: Option<Fault>) -> Turn {
        if self.asked.is_some() {
            // That the key is this waiter's stands until it has asked.
            if !matches!(self.news, Some(Push::Given(..))) {
                self.news = Some(news);
            }
            return Turn::Waits;
        }
        match news {
            Push::Next(_, after) => {
                self.until = now + Duration::from_millis(after).min(LONGEST);
                Turn::Waits
            }
            Push::Given(_, fence, ends) => {
                let longest = self.lease.ttl().min(GRANT);
                let ends = ServerTime(ends * 1_000);
                let deadline = self.anchor.and_then(|anchor| {
                    wrong_deadline(anchor, ends, now, fault)
                        .or_else(|| anchor.deadline(ends, now, longest))
                });
                match deadline {
                    Some(deadline) if self.lease.take_over(deadline, now) => {
                        Turn::Holds(self.tenure(fence, now))
                    }
                    _ => Turn::Asks,
                }
            }
        }
    }

    /// The lease goes from who waited for it to who holds it.
    fn tenure(&mut self, fence: u64, now: Moment) -> Tenure {
        Tenure {
            name: self.name,
            lease: self.lease.clone(),
            fence,
            twin: self.twin,
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
    fault: Option<Fault>,
) -> Option<Moment> {
    let span = Duration::from_micros(ends.0.checked_sub(anchor.server.0)?);
    let rounding = Duration::from_millis(2);
    match fault? {
        Fault::NoDrift => Some(anchor.local + span.saturating_sub(rounding)),
        Fault::DriftOfTheGrantOnly => {
            Some(anchor.local + span.saturating_sub(GRANT / 100 + rounding))
        }
        Fault::DeadlineFromThePush => Some(heard + GRANT.saturating_sub(GRANT / 100 + rounding)),
        _ => None,
    }
}

impl Tenure {
    /// The next in line of this process goes on with the lease.
    pub(super) fn pass(
        &mut self,
        terms: LeaseOptions,
        now: Moment,
        fault: Option<Fault>,
    ) -> Option<Self> {
        let bounded = self.passes >= MOST || now >= self.granted + LONGEST_COHORT;
        if bounded && fault != Some(Fault::PassedWithoutBound) {
            return None;
        }
        let lease = match self.lease.pass(terms, now) {
            Some(lease) => lease,
            None if fault == Some(Fault::PassedAfterItsEnd) => {
                let mut lease = Lease::new(terms);
                lease.grant(now, now).then_some(lease)?
            }
            None => return None,
        };
        Some(Self {
            name: self.name,
            lease,
            fence: self.fence + 1,
            twin: self.twin,
            granted: self.granted,
            passes: self.passes + 1,
            extending: None,
            served: false,
        })
    }

    /// The answer to a renewal. `true`: the lease is lost by it.
    pub(super) fn renewed(
        &mut self,
        sent: Moment,
        answer: crate::lease::Renewal,
        terms: LeaseOptions,
        now: Moment,
        fault: Option<Fault>,
    ) -> bool {
        self.extending = None;
        let lost = self.lease.renewed(sent, answer, now);
        if fault == Some(Fault::RenewalCountsForANewerTtl)
            && answer == crate::lease::Renewal::Extended
            && !lost
            && self.served
        {
            let mut longer = Lease::new(terms);
            if longer.grant(sent, now) {
                self.lease = longer;
            }
        }
        lost
    }
}
