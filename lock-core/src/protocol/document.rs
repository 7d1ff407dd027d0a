//! The state of a key: its owners and its waiters.

use super::Millis;
use super::shares::Shares;
use crate::base::token::Token;

/// The state of one key on the server. By default, the key has no owner and no waiter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Document {
    pub(super) phase: Phase,
    /// In the order of arrival.
    pub(super) queue: Vec<Waiter>,
    /// The server deletes the queue at this time. Each waiter has asked again long before.
    pub(super) queue_ends: Millis,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Phase {
    #[default]
    Free,
    /// A lock, or a share that is alone.
    Held(Hold),
    /// Several shares, or those that remain of several.
    Shared(Shares),
    Closed(Closed),
}

/// A lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hold {
    pub(super) token: Token,
    pub(super) ends: Millis,
}

/// A cooldown or a record, which keeps the key taken after the end of its owner.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Closed {
    /// The token of that owner.
    pub(super) of: Token,
    pub(super) until: Millis,
    /// The fencing token of that owner, if it had one, and its bytes.
    pub(super) record: Option<(Option<u64>, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waiter {
    pub(super) token: Token,
    /// The time for which a hand-over gives the key to the waiter.
    pub(super) grant: Millis,
    pub(super) waited: Waited,
}

/// How long a waiter has waited, as far as the server knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Waited {
    /// The waiter arrived at this time, in microseconds. The number is higher if the clock shows less than the number of the
    /// waiter before it.
    Since(u64),
    /// The server asked the waiter at this time whether it still waits.
    Asked(Millis),
    /// The waiter has answered the question of this time.
    Answered(Millis),
}

impl Document {
    /// Removes a lease, a cooldown, a record and a queue that have ended.
    pub(super) fn settle(&mut self, now: Millis) {
        if self.ends().is_some_and(|ends| now > ends) {
            self.phase = Phase::Free;
        }
        if now > self.queue_ends {
            self.queue.clear();
        }
    }

    /// Returns the end of the key, unless the key is free.
    pub(super) fn ends(&self) -> Option<Millis> {
        match &self.phase {
            Phase::Free => None,
            Phase::Held(hold) => Some(hold.ends),
            Phase::Shared(shares) => Some(shares.ends),
            Phase::Closed(closed) => Some(closed.until),
        }
    }

    pub(super) fn is_free(&self) -> bool {
        self.phase == Phase::Free
    }

    pub(super) fn has_record(&self) -> bool {
        matches!(&self.phase, Phase::Closed(closed) if closed.record.is_some())
    }

    /// Returns the lease with this token, if it is the only one.
    pub(super) fn hold_of(&mut self, token: Token) -> Option<&mut Hold> {
        match &mut self.phase {
            Phase::Held(hold) if hold.token == token => Some(hold),
            _ => None,
        }
    }

    /// Removes a lease that has the key alone. Returns whether it was there.
    pub(super) fn free(&mut self, token: Token) -> bool {
        let was_there = self.hold_of(token).is_some();
        if was_there {
            self.phase = Phase::Free;
        }
        was_there
    }
}
