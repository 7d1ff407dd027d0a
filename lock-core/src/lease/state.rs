//! A lease as a pure state machine: it has no clock and no I/O, and `now` is an argument.
//!
//! One lease is one token in the store. A lease is requested, then held, and then either lost or
//! closed. Lost and closed are final. All decisions on whether a body may continue are made here.

use std::time::Duration;

use super::loss::Loss;
use super::options::LeaseOptions;
use crate::base::clock::Moment;
use crate::lease::deadline::{GRANT, deadline};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The lease was requested, and the store has not answered.
    Asking,
    Held,
    Lost(Loss),
    /// The lease was released, or never granted.
    Closed,
}

/// Tells the keeper what to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// The keeper extends the lease in the store, and [`Lease::renewed`] takes the answer.
    Renew,
    /// The lease has just been lost, and the keeper tells its owner.
    Lost,
    /// The store has not answered in time, and the keeper tells the requester.
    Overdue,
    /// The lease has been held for ten ttls, and the keeper logs a warning.
    ///
    /// The action comes once, unless [`Lease::warn_at`] sets the next time.
    HeldLong,
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    Yes,
    /// A definite answer: the key is gone, or another owner has it.
    NotOurs,
    /// No answer, or an answer that says nothing about this key.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renewing {
    Off,
    At(Moment),
    /// A renewal is in flight, with this ttl. `hinted`: the key was changed since, as far as is known.
    Sent {
        millis: u32,
        hinted: bool,
    },
}

#[derive(Debug)]
// Only tests copy a lease. A held lease exists once.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Lease {
    phase: Phase,
    options: LeaseOptions,
    /// The moment of loss, or while asking the moment at which the answer is overdue.
    deadline: Moment,
    renewing: Renewing,
    max_hold_at: Moment,
    warn_at: Moment,
    /// The next renewal by a hint comes no earlier. Far until a renewal was sent, because no hint is about this lease
    /// before.
    hints_from: Moment,
}

impl Lease {
    pub(crate) fn new(options: LeaseOptions) -> Self {
        Self {
            phase: Phase::Asking,
            options,
            deadline: Moment::FAR,
            renewing: Renewing::Off,
            max_hold_at: Moment::FAR,
            warn_at: Moment::FAR,
            hints_from: Moment::FAR,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn options(&self) -> LeaseOptions {
        self.options
    }

    /// Returns when the longest hold is over.
    pub(crate) fn max_hold_at(&self) -> Moment {
        self.max_hold_at
    }

    /// Returns the ttl of the renewal in flight.
    ///
    /// The options may have changed since the renewal was sent.
    pub(crate) fn renewing_to(&self) -> Duration {
        match self.renewing {
            Renewing::Sent { millis, .. } => Duration::from_millis(u64::from(millis)),
            Renewing::Off | Renewing::At(_) => self.options.ttl(),
        }
    }

    /// Passes the lease to another task with its own options, and closes it here.
    ///
    /// Returns `None` unless both options have the same ttl and are renewed, and the lease lasts
    /// long enough for the new owner to start.
    pub(crate) fn pass(&mut self, options: LeaseOptions, now: Moment) -> Option<Self> {
        let alike =
            options.ttl_millis == self.options.ttl_millis && options.renew && self.options.renew;
        let enough = self.options.ttl().min(GRANT) / 2;
        if self.observe(now) || self.phase != Phase::Held || !alike {
            return None;
        }
        if self.deadline.since(now) < enough {
            return None;
        }
        self.phase = Phase::Closed;
        let renewal = match std::mem::replace(&mut self.renewing, Renewing::Off) {
            Renewing::At(at) => at,
            // The answer arrives for an owner that is gone.
            Renewing::Sent { .. } | Renewing::Off => now + self.retry_interval(now),
        };
        let unwatched = options.watch && self.hints_from == Moment::FAR;
        Some(Self {
            phase: Phase::Held,
            options,
            deadline: self.deadline,
            renewing: Renewing::At(if unwatched { now } else { renewal }),
            max_hold_at: now + options.max_hold(),
            warn_at: now + options.ttl() * 10,
            hints_from: self.hints_from,
        })
    }

    /// Sets the moment at which the store's answer is overdue, before the request is sent.
    pub(crate) fn ask(&mut self, overdue: Moment) {
        if self.phase == Phase::Asking {
            self.deadline = overdue;
        }
    }

    /// Records a grant for a request sent at `sent`.
    ///
    /// Returns `false` if the answer came too late, because the lease may have ended in the store
    /// already.
    #[must_use]
    pub(crate) fn grant(&mut self, sent: Moment, now: Moment) -> bool {
        let deadline = deadline(sent, self.options.ttl());
        if self.phase != Phase::Asking || now >= deadline {
            return false;
        }
        if self.options.renew {
            let first = match self.options.watch {
                true => now,
                false => sent + self.renewal_interval(),
            };
            self.renewing = Renewing::At(first);
        }
        self.hold(deadline, now);
        true
    }

    fn hold(&mut self, deadline: Moment, now: Moment) {
        self.phase = Phase::Held;
        self.deadline = deadline;
        self.max_hold_at = now + self.options.max_hold();
        self.warn_at = now + self.options.ttl() * 10;
    }

    /// Records that the store granted the key to this waiter until `deadline`.
    ///
    /// Returns `false` if too little time is left. The waiter then asks the store itself.
    #[must_use]
    pub(crate) fn take_over(&mut self, deadline: Moment, now: Moment) -> bool {
        let left = deadline.since(now);
        let shortest = self.options.ttl().min(GRANT) / 4;
        if self.phase != Phase::Asking || left < shortest {
            return false;
        }
        // The grant is extended to the full ttl early, even if it is not renewed afterwards.
        self.renewing = Renewing::At(now + left / 3);
        if self.options.watch {
            self.renew_by(now);
        }
        self.hold(deadline, now);
        true
    }

    /// Returns the time between renewals, a third of the ttl and at most 10 s.
    ///
    /// With a third of the ttl, one renewal may fail. With at most 10 s, a key that was deleted is
    /// noticed even under a long ttl.
    fn renewal_interval(&self) -> Duration {
        (self.options.ttl() / 3).min(Duration::from_secs(10))
    }

    /// Returns the pause after an unanswered renewal, short enough for several attempts.
    fn retry_interval(&self, now: Moment) -> Duration {
        (self.options.ttl() / 12)
            .min(self.remaining(now) / 4)
            .clamp(Duration::from_millis(2), Duration::from_secs(1))
    }

    /// Returns the moment at which [`poll`](Lease::poll) has something to do next.
    pub(crate) fn due(&self) -> Option<Moment> {
        match self.phase {
            Phase::Asking => Some(self.deadline),
            Phase::Held => {
                let renewal = match self.renewing {
                    Renewing::At(at) => at,
                    Renewing::Off | Renewing::Sent { .. } => Moment::FAR,
                };
                Some(
                    self.deadline
                        .min(renewal)
                        .min(self.max_hold_at)
                        .min(self.warn_at),
                )
            }
            Phase::Lost(_) | Phase::Closed => None,
        }
    }

    pub(crate) fn poll(&mut self, now: Moment) -> Action {
        if self.observe(now) {
            return Action::Lost;
        }
        match self.phase {
            Phase::Asking if now >= self.deadline => {
                // The lease reports an overdue answer once, and the requester decides how to
                // continue.
                self.deadline = Moment::FAR;
                Action::Overdue
            }
            Phase::Held => match self.renewing {
                Renewing::At(at) if now >= at => {
                    self.renewing = Renewing::Sent {
                        millis: self.options.ttl_millis,
                        hinted: false,
                    };
                    self.is_watched();
                    Action::Renew
                }
                _ if now >= self.warn_at => {
                    self.warn_at = Moment::FAR;
                    Action::HeldLong
                }
                _ => Action::Nothing,
            },
            _ => Action::Nothing,
        }
    }

    /// Sets the moment of the next warning.
    pub(crate) fn warn_at(&mut self, at: Moment) {
        self.warn_at = at;
    }

    /// Applies the time `now`; returns `true` if the lease has just been lost.
    pub(crate) fn observe(&mut self, now: Moment) -> bool {
        if self.phase != Phase::Held {
            return false;
        }
        let loss = if now >= self.deadline {
            Loss::Expired
        } else if now >= self.max_hold_at {
            Loss::MaxHold
        } else {
            return false;
        };
        self.lose(loss);
        true
    }

    /// Ends the lease by the loss of another key, or by an operator; returns `true` if it was held.
    pub(crate) fn lose_with(&mut self, loss: Loss) -> bool {
        let held = self.phase == Phase::Held;
        if held {
            self.lose(loss);
        }
        held
    }

    fn lose(&mut self, loss: Loss) {
        self.phase = Phase::Lost(loss);
        self.renewing = Renewing::Off;
    }

    /// Records the answer to a renewal; returns `true` if the lease is lost.
    ///
    /// `sent` is the moment of the send. An error never ends renewing before the deadline. A
    /// definite "not ours" is a loss at once.
    pub(crate) fn renewed(&mut self, sent: Moment, answer: Extended, now: Moment) -> bool {
        let extended_to = self.renewing_to();
        let hinted = matches!(self.renewing, Renewing::Sent { hinted: true, .. });
        let lost = self.renewed_late(sent, answer, extended_to, now);
        // The owner may have released the lease in the meantime, and then the answer does not matter.
        if self.phase != Phase::Held {
            return lost;
        }
        self.renewing = match answer {
            Extended::Yes if extended_to < self.options.ttl() => Renewing::At(now),
            Extended::Yes if self.options.renew => Renewing::At(sent + self.renewal_interval()),
            Extended::Yes => Renewing::Off,
            _ => Renewing::At(now + self.retry_interval(now)),
        };
        if hinted && answer == Extended::Yes {
            self.hint(now);
        }
        false
    }

    /// Records what an answer says about the end of the lease, also if it was taken for unanswered; returns `true` if the lease
    /// is lost.
    pub(crate) fn renewed_late(
        &mut self,
        sent: Moment,
        answer: Extended,
        ttl: Duration,
        now: Moment,
    ) -> bool {
        let was_held = self.phase == Phase::Held;
        let goes_on = was_held && !self.observe(now);
        match answer {
            // The deadline only moves later, so an overtaken answer changes nothing.
            Extended::Yes if goes_on => self.deadline = self.deadline.max(deadline(sent, ttl)),
            Extended::NotOurs if goes_on => self.lose(Loss::NotOurs),
            _ => {}
        }
        was_held && self.phase != Phase::Held
    }

    /// Returns how long the lease lasts without another renewal.
    pub(crate) fn remaining(&self, now: Moment) -> Duration {
        match self.phase {
            Phase::Held => self.deadline.min(self.max_hold_at).since(now),
            _ => Duration::ZERO,
        }
    }

    /// Closes the lease before the release is sent; returns the phase before.
    pub(crate) fn close(&mut self, now: Moment) -> Phase {
        self.observe(now);
        let before = self.phase;
        if !matches!(before, Phase::Lost(_)) {
            self.phase = Phase::Closed;
        }
        self.renewing = Renewing::Off;
        before
    }
}

#[path = "renewals.rs"]
mod renewals;

#[cfg(test)]
#[path = "passing_tests.rs"]
mod passing_tests;
#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
