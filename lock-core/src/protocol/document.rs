//! The state of a key: its owners and its waiters.

use std::sync::Arc;

use super::Millis;
use super::shares::Shares;
use crate::base::record::StoredRecord;
use crate::base::token::Token;

/// The state of one key on the server. By default, the key has no owner and no waiter.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Document {
    pub(crate) phase: Phase,
    /// In the order of arrival.
    pub(crate) queue: Vec<Waiter>,
    /// The server deletes the queue at this time. Each waiter has asked again long before.
    pub(crate) queue_ends: Millis,
}

#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) enum Phase {
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
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Hold {
    pub(crate) token: Token,
    pub(crate) ends: Millis,
}

/// A cooldown or a record, which keeps the key taken after the end of its owner.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Closed {
    /// The token of that owner.
    pub(crate) of: Token,
    pub(crate) until: Millis,
    pub(crate) record: Option<Arc<StoredRecord>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Waiter {
    pub(crate) token: Token,
    /// The time for which a hand-over gives the key to the waiter.
    pub(crate) grant: Millis,
    pub(crate) waited: Waited,
}

/// How long a waiter has waited, as far as the server knows.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) enum Waited {
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
    pub(crate) fn settle(&mut self, now: Millis) {
        if self.ends().is_some_and(|ends| now > ends) {
            self.phase = Phase::Free;
        }
        if now > self.queue_ends {
            self.queue.clear();
        }
    }

    /// Returns the end of the key, unless the key is free.
    pub(crate) fn ends(&self) -> Option<Millis> {
        match &self.phase {
            Phase::Free => None,
            Phase::Held(hold) => Some(hold.ends),
            Phase::Shared(shares) => Some(shares.ends),
            Phase::Closed(closed) => Some(closed.until),
        }
    }

    /// Returns the last millisecond in which the document says what it says at `now`; `None`: it says so for ever.
    #[cfg(any(feature = "postgres", test))]
    pub(crate) fn stays_until(&self, now: Millis) -> Option<Millis> {
        let shares = match &self.phase {
            Phase::Shared(shares) => shares.inside.as_slice(),
            _ => &[],
        };
        let queue = (!self.queue.is_empty()).then_some(self.queue_ends);
        let ends = shares.iter().map(|place| place.ends);
        let ends = ends.chain(self.ends()).chain(queue);
        ends.filter(|ends| now <= *ends).min()
    }

    /// Returns whether the key has neither an owner nor a waiter.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_free() && self.queue.is_empty()
    }

    pub(crate) fn is_free(&self) -> bool {
        self.phase == Phase::Free
    }

    /// Returns whether a lock with this token may have the key.
    pub(crate) fn may_be_had_by(&self, token: Token) -> bool {
        match &self.phase {
            Phase::Free => true,
            Phase::Held(hold) => hold.token == token,
            Phase::Shared(_) | Phase::Closed(_) => false,
        }
    }

    pub(crate) fn has_record(&self) -> bool {
        self.record().is_some()
    }

    pub(crate) fn record(&self) -> Option<&Arc<StoredRecord>> {
        match &self.phase {
            Phase::Closed(closed) => closed.record.as_ref(),
            _ => None,
        }
    }

    /// Returns the lease with this token, if it is the only one.
    pub(crate) fn hold_of(&mut self, token: Token) -> Option<&mut Hold> {
        match &mut self.phase {
            Phase::Held(hold) if hold.token == token => Some(hold),
            _ => None,
        }
    }

    /// Removes a lease that has the key alone. Returns whether it was there.
    pub(crate) fn free(&mut self, token: Token) -> bool {
        let was_there = self.hold_of(token).is_some();
        if was_there {
            self.phase = Phase::Free;
        }
        was_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::token::{Address, TokenSource};

    #[test]
    fn a_document_changes_with_the_first_end_of_a_share_or_of_the_queue() {
        let tokens = TokenSource::new(Address::random());
        let mut document = Document::default();
        assert_eq!(document.stays_until(7), None);
        document.enter(tokens.fresh(), 20);
        document.enter(tokens.fresh(), 10);
        // A second share makes the lease of the first a millisecond longer.
        let changes = [7, 10, 11, 21, 22].map(|now| document.stays_until(now));
        assert_eq!(changes, [Some(10), Some(10), Some(21), Some(21), None]);
        document.queue.push(Waiter {
            token: tokens.fresh(),
            grant: 2_000,
            waited: Waited::Since(0),
        });
        document.queue_ends = 8;
        assert_eq!(document.stays_until(7), Some(8));
        document.phase = Phase::Free;
        assert_eq!(document.stays_until(9), None);
    }
}
