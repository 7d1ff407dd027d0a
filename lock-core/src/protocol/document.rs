//! The value of a key: who has it, and who waits for it.

use super::Millis;
use super::shares::Shares;
use crate::base::token::Token;

/// Everything that the server keeps about one key. The default is a key that nobody has ever asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Document {
    pub(super) phase: Phase,
    /// In the order of arrival.
    pub(super) queue: Vec<Waiter>,
    /// When the queue is forgotten, because its waiters have had to ask again long before.
    pub(super) queue_ends: Millis,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Phase {
    #[default]
    Free,
    /// A lock, or a share that is alone.
    Held(Hold),
    /// Several shares, or what is left of them.
    Shared(Shares),
    Closed(Closed),
}

/// A lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hold {
    pub(super) token: Token,
    pub(super) ends: Millis,
}

/// A key whose owner has ended, and that stays taken: by a cooldown, or by a record.
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
    /// For how long the key is given to it.
    pub(super) grant: Millis,
    pub(super) waited: Waited,
}

/// What is known of the time for which a waiter has waited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Waited {
    /// The time of its arrival in microseconds, or the number after that of the waiter before it if the clock shows less.
    Since(u64),
    /// The time in milliseconds at which it was asked whether it still waits.
    Asked(Millis),
    /// It was asked then, and has answered.
    Answered(Millis),
}

impl Document {
    /// Forgets what has ended.
    pub(super) fn settle(&mut self, now: Millis) {
        if self.ends().is_some_and(|ends| now > ends) {
            self.phase = Phase::Free;
        }
        if now > self.queue_ends {
            self.queue.clear();
        }
    }

    /// The end of the key, unless it is free.
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

    /// The lease with this token, if no other one is beside it.
    pub(super) fn hold_of(&mut self, token: Token) -> Option<&mut Hold> {
        match &mut self.phase {
            Phase::Held(hold) if hold.token == token => Some(hold),
            _ => None,
        }
    }

    /// Ends a lease that has the key alone, and nothing else. Answers whether it had it.
    pub(super) fn free(&mut self, token: Token) -> bool {
        let was_there = self.hold_of(token).is_some();
        if was_there {
            self.phase = Phase::Free;
        }
        was_there
    }
}
