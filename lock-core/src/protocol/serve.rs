//! Giving a key to the waiters at the head of its queue.

use super::{Around, Document, Millis, News, Waited};
use crate::base::token::{Address, Token};

/// A waiter that asked longer ago may be dead, in microseconds.
const SURELY_ALIVE: u64 = 1_000_000;

/// The caller, and the result of serving the queue so far.
#[derive(Default)]
pub(crate) struct Serving {
    /// The share that asks, with its ttl. It gets the key in its turn, and looks at the waiter that keeps it out.
    pub(crate) caller: Option<(Token, Millis)>,
    /// The fencing token of the caller, if its turn has come.
    pub(crate) fence: Option<u64>,
    /// Whether another waiter was let in.
    pub(crate) gave: bool,
    /// The time until the caller asks again about the waiter that keeps it out.
    pub(crate) again: Option<Millis>,
    /// The process of a waiter that does not listen, or has not answered.
    pub(crate) silent: Option<Address>,
}

impl Document {
    /// Lets the first waiters in, each for its grant, as long as they fit.
    ///
    /// A waiter whose process does not listen is removed, but only where it would be let in, because only a push shows
    /// that it is dead.
    pub(crate) fn serve(&mut self, serving: &mut Serving, around: &mut Around<'_>) {
        // The grant of the last waiter that was let in, if it may be dead.
        let mut doubtful: Option<Millis> = None;
        while let Some(head) = self.queue.first().copied() {
            let is_gone = serving.silent == Some(head.token.address())
                || !self.fits(head.token) && self.is_gone(&head, serving, around);
            if is_gone {
                self.queue.remove(0);
                // If its process goes on after all, it asks at once.
                let grant = head.grant;
                around.tell(head.token, News::Next { grant, after: 0 });
                continue;
            }
            if !self.fits(head.token) {
                break;
            }
            self.queue.remove(0);
            let caller = serving.caller.filter(|(token, _)| *token == head.token);
            if let Some((token, ttl)) = caller {
                self.enter(token, around.now_ms() + ttl);
                serving.fence = Some(around.next_fence());
                continue;
            }
            let grant = head.grant;
            self.enter(head.token, around.now_ms() + grant);
            if !around.hears(head.token) {
                self.remove(head.token);
                continue;
            }
            let fence = around.next_fence();
            around.tell(head.token, News::Given { grant, fence });
            serving.gave = true;
            doubtful = head.waited.is_long(around.now.0).then_some(grant);
        }
        // The next waiters ask when this grant ends, because the new owner may be dead.
        if let Some(grant) = doubtful {
            self.tell_next(grant, around);
        }
    }

    /// Serves the queue after an operation that does not ask for the key. Returns whether a waiter was let in.
    pub(crate) fn serve_waiters(&mut self, around: &mut Around<'_>) -> bool {
        let mut serving = Serving::default();
        self.serve(&mut serving, around);
        serving.gave
    }
}

impl Waited {
    /// Returns whether the waiter may have died since it asked. If the clock was set back, the age of the waiter is unknown.
    fn is_long(self, now: u64) -> bool {
        match self {
            Waited::Since(arrival) => now
                .checked_sub(arrival)
                .is_none_or(|age| age > SURELY_ALIVE),
            Waited::Asked(_) | Waited::Answered(_) => true,
        }
    }
}
