//! The state of the server beside the key, and the messages of an operation.

use super::Millis;
use crate::base::clock::ServerTime;
use crate::base::token::{Address, Token};

/// The number of times that a process passes a lease to another of its tasks before it tells the store. Each pass has a
/// fencing token of its own. `common.lua` has the same number.
const PASSES: u64 = 1000;

/// The server around a key.
pub(crate) struct Around<'a> {
    pub(crate) now: ServerTime,
    /// The highest fencing token that was used on this server, as far as it was noted. 0: none.
    pub(crate) mark: u64,
    /// The fencing token of the lease that ends by this operation. 0: none.
    pub(crate) used: u64,
    /// Whether the server has memory for a new key or entry.
    pub(crate) has_room: bool,
    /// Returns whether a process listens at an address. A process that does not listen is dead.
    pub(crate) listens: &'a dyn Fn(Address) -> bool,
    /// The messages of this operation, in their order.
    pub(crate) pushes: Vec<Push>,
}

/// A message to the process of a waiter or of a holder.
pub(crate) struct Push {
    pub(crate) to: Address,
    pub(crate) token: Token,
    pub(crate) news: News,
}

#[derive(Clone, Copy)]
pub(crate) enum News {
    /// The key is this waiter's for its grant.
    Given { grant: Millis, fence: u64 },
    /// The waiter asks after this long, unless other news comes first.
    Next { grant: Millis, after: Millis },
    /// An operator has freed the key of this holder.
    Forced,
}

impl<'a> Around<'a> {
    pub(crate) fn new(now: ServerTime, mark: u64, listens: &'a dyn Fn(Address) -> bool) -> Self {
        Self {
            now,
            mark,
            used: 0,
            has_room: true,
            listens,
            pushes: Vec::new(),
        }
    }

    pub(crate) fn now_ms(&self) -> Millis {
        self.now.0 / 1000
    }

    pub(crate) fn hears(&self, token: Token) -> bool {
        (self.listens)(token.address())
    }

    /// Sends a message. A dead process gets none.
    pub(crate) fn tell(&mut self, token: Token, news: News) {
        let to = token.address();
        if (self.listens)(to) {
            self.pushes.push(Push { to, token, news });
        }
    }

    /// Notes a fencing token that was used, so that no later one is lower. A server without memory notes nothing.
    pub(crate) fn raise(&mut self, used: Option<u64>) {
        if self.has_room {
            self.mark = self.mark.max(used.unwrap_or(0));
        }
    }

    /// Notes that a lease may have used this token and all others of its process.
    pub(crate) fn use_up(&mut self, used: u64) {
        self.mark = self.mark.max(used) + PASSES;
    }

    /// Returns the fencing token of a grant. It is the time, or a higher number if the clock is behind a used token.
    ///
    /// With a clock that is behind, the mark rises above all tokens that the new lease may use, because the end of the lease
    /// does not prove that the clock has passed them.
    pub(crate) fn next_fence(&mut self) -> u64 {
        let highest = self.mark.max(self.used);
        if highest < self.now.0 {
            return self.now.0;
        }
        self.mark = highest + 1 + PASSES;
        highest + 1
    }
}
