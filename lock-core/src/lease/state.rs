//! A lease as a pure state machine: no clock, no I/O, `now` is an argument.
//!
//! One lease is one token in the store. It is asked for, held, and then either lost or closed; lost
//! and closed are final. Everything that decides whether a body may still run is decided here.

use std::time::Duration;

use super::options::LeaseOptions;
use crate::base::clock::Moment;
use crate::lease::deadline::{GRANT, deadline};

/// Why a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) enum Loss {
    /// Its deadline passed before it was extended.
    Expired,
    /// The store says that the key is not this lease's any more.
    NotOurs,
    /// It was held for as long as it may be.
    MaxHold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) enum Phase {
    /// Asked for; the store has not answered.
    Asking,
    Held,
    Lost(Loss),
    /// Given back, or never granted.
    Closed,
}

/// What the keeper has to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// Extend it in the store; [`Lease::renewed`] takes the answer.
    Renew,
    /// It was lost just now: tell its owner.
    Lost,
    /// The store has not answered in time: tell whoever asks.
    Overdue,
    /// It has been held for ten times its ttl: worth a warning, once, unless
    /// [`Lease::warn_at`] sets the next.
    HeldLong,
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    Extended,
    /// A definite answer: the key is gone, or somebody else's.
    NotOurs,
    /// No answer, or none that says anything about this key.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
enum Renewing {
    Off,
    At(Moment),
    /// Sent with this ttl in milliseconds; nothing to do until the answer or the deadline.
    Sent(u32),
}

#[derive(Debug)]
// For the model only: a lease that is held has one copy.
#[cfg_attr(test, derive(Clone, PartialEq, Eq, Hash))]
pub(crate) struct Lease {
    phase: Phase,
    terms: LeaseOptions,
    /// While asking: when the answer is overdue. While held: when the lease is lost.
    deadline: Moment,
    renewing: Renewing,
    max_hold_at: Moment,
    warn_at: Moment,
}

impl Lease {
    pub(crate) fn new(terms: LeaseOptions) -> Self {
        Self {
            phase: Phase::Asking,
            terms,
            deadline: Moment::FAR,
            renewing: Renewing::Off,
            max_hold_at: Moment::FAR,
            warn_at: Moment::FAR,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.terms.ttl()
    }

    pub(crate) fn renews(&self) -> bool {
        self.terms.renew
    }

    pub(crate) fn leaves_gaps(&self) -> bool {
        self.terms.leaves_gaps()
    }

    /// The ttl of the renewal that is under way. The terms may have changed since it was begun.
    pub(crate) fn renewing_to(&self) -> Duration {
        match self.renewing {
            Renewing::Sent(millis) => Duration::from_millis(u64::from(millis)),
            Renewing::Off | Renewing::At(_) => self.terms.ttl(),
        }
    }

    /// The lease goes on under other terms, as another tenure's, and is closed here. Only if both are
    /// alike and renewed, and enough is left for the new one to begin with.
    pub(crate) fn pass(&mut self, terms: LeaseOptions, now: Moment) -> Option<Self> {
        let alike = terms.ttl_millis == self.terms.ttl_millis && terms.renew && self.terms.renew;
        let enough = self.terms.ttl().min(GRANT) / 2;
        if self.observe(now) || self.phase != Phase::Held || !alike {
            return None;
        }
        if self.deadline.since(now) < enough {
            return None;
        }
        self.phase = Phase::Closed;
        Some(Self {
            phase: Phase::Held,
            terms,
            deadline: self.deadline,
            renewing: match std::mem::replace(&mut self.renewing, Renewing::Off) {
                Renewing::At(at) => Renewing::At(at),
                // Its answer comes to a tenure that is over.
                Renewing::Sent(_) | Renewing::Off => Renewing::At(now + self.retry_interval(now)),
            },
            max_hold_at: now + terms.max_hold(),
            warn_at: now + terms.ttl() * 10,
        })
    }

    /// A body with terms of its own goes under this lease. The ttl only grows, as the store would
    /// cut a lease down to a shorter one; what the lease lacks of it is asked for at once.
    pub(crate) fn serve(&mut self, nested: LeaseOptions, now: Moment) {
        let longer = nested.ttl_millis > self.terms.ttl_millis;
        let unattended = !self.terms.renew;
        let short = self.deadline < deadline(now, nested.ttl());
        self.terms.ttl_millis = self.terms.ttl_millis.max(nested.ttl_millis);
        self.terms.renew |= nested.renew;
        match self.renewing {
            // Its answer sees to what is still missing.
            Renewing::Sent(_) => {}
            _ if longer || (unattended && short) => self.renewing = Renewing::At(now),
            Renewing::Off if nested.renew => {
                self.renewing = Renewing::At(now + self.renewal_interval());
            }
            Renewing::Off | Renewing::At(_) => {}
        }
    }

    /// Its key may be gone: a renewal says so.
    pub(crate) fn renew_now(&mut self, now: Moment) {
        if let Renewing::At(at) = &mut self.renewing {
            *at = now.min(*at);
        }
    }

    /// The last body that wanted it renewed has left.
    pub(crate) fn stop_renewing(&mut self) {
        self.terms.renew = false;
        if let Renewing::At(_) = self.renewing {
            self.renewing = Renewing::Off;
        }
    }

    /// The store is about to be asked, and has until `overdue` to answer.
    pub(crate) fn ask(&mut self, overdue: Moment) {
        if self.phase == Phase::Asking {
            self.deadline = overdue;
        }
    }

    /// The store granted what was sent at `sent`. `false` if that came too late: the lease may have
    /// ended at the store already, so it counts for nothing.
    #[must_use]
    pub(crate) fn grant(&mut self, sent: Moment, now: Moment) -> bool {
        let deadline = deadline(sent, self.terms.ttl());
        if self.phase != Phase::Asking || now >= deadline {
            return false;
        }
        self.phase = Phase::Held;
        self.deadline = deadline;
        if self.terms.renew {
            self.renewing = Renewing::At(sent + self.renewal_interval());
        }
        self.max_hold_at = now + self.terms.max_hold();
        self.warn_at = now + self.terms.ttl() * 10;
        true
    }

    /// The store gave the key to this waiter, until `deadline` for a start. `false` if too little is
    /// left of that: better ask.
    #[must_use]
    pub(crate) fn take_over(&mut self, deadline: Moment, now: Moment) -> bool {
        let left = deadline.since(now);
        let shortest = self.terms.ttl().min(GRANT) / 4;
        if self.phase != Phase::Asking || left < shortest {
            return false;
        }
        self.phase = Phase::Held;
        self.deadline = deadline;
        // To the full ttl, in good time; also where nothing is renewed afterwards.
        self.renewing = Renewing::At(now + left / 3);
        self.max_hold_at = now + self.terms.max_hold();
        self.warn_at = now + self.terms.ttl() * 10;
        true
    }

    /// A third of the ttl, so that one renewal may fail; at most 10 s, so that a key that was taken
    /// away is noticed even under a long ttl.
    fn renewal_interval(&self) -> Duration {
        (self.terms.ttl() / 3).min(Duration::from_secs(10))
    }

    /// Soon after a renewal that was not answered, often enough to try several times.
    fn retry_interval(&self, now: Moment) -> Duration {
        (self.terms.ttl() / 12)
            .min(self.remaining(now) / 4)
            .clamp(Duration::from_millis(2), Duration::from_secs(1))
    }

    /// When [`poll`](Lease::poll) has something to do next.
    pub(crate) fn due(&self) -> Option<Moment> {
        match self.phase {
            Phase::Asking => Some(self.deadline),
            Phase::Held => {
                let renewal = match self.renewing {
                    Renewing::At(at) => at,
                    Renewing::Off | Renewing::Sent(_) => Moment::FAR,
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
                // Told once; whoever asks decides what follows.
                self.deadline = Moment::FAR;
                Action::Overdue
            }
            Phase::Held => match self.renewing {
                Renewing::At(at) if now >= at => {
                    self.renewing = Renewing::Sent(self.terms.ttl_millis);
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

    /// When a warning is worth its line again.
    pub(crate) fn warn_at(&mut self, at: Moment) {
        self.warn_at = at;
    }

    /// Reads the clock into the lease: `true` if it is lost by this very look.
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

    fn lose(&mut self, loss: Loss) {
        self.phase = Phase::Lost(loss);
        self.renewing = Renewing::Off;
    }

    /// The answer to the renewal sent at `sent`. An error never ends renewing before the deadline;
    /// a definite "not yours" is loss at once. `true` if the lease is lost by it.
    pub(crate) fn renewed(&mut self, sent: Moment, answer: Renewal, now: Moment) -> bool {
        // The owner may have given the lease back in the meantime: then the answer says nothing.
        if self.phase != Phase::Held {
            return false;
        }
        if self.observe(now) {
            return true;
        }
        match answer {
            Renewal::Extended => {
                let extended_to = self.renewing_to();
                // It only lengthens: an answer that was overtaken changes nothing.
                self.deadline = self.deadline.max(deadline(sent, extended_to));
                self.renewing = if extended_to < self.terms.ttl() {
                    Renewing::At(now)
                } else if self.terms.renew {
                    Renewing::At(sent + self.renewal_interval())
                } else {
                    Renewing::Off
                };
                false
            }
            Renewal::NotOurs => {
                self.lose(Loss::NotOurs);
                true
            }
            Renewal::Unknown => {
                self.renewing = Renewing::At(now + self.retry_interval(now));
                false
            }
        }
    }

    /// How long the lease still lasts without another renewal.
    pub(crate) fn remaining(&self, now: Moment) -> Duration {
        match self.phase {
            Phase::Held => self.deadline.min(self.max_hold_at).since(now),
            _ => Duration::ZERO,
        }
    }

    /// Ends the lease on this side, before the release is sent; answers the phase it was in.
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

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
