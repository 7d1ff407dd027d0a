//! Giving a key to the waiters at the head of its queue.

use super::{Around, Document, Millis, News, Waited};

/// A waiter that asked longer ago may be dead, in microseconds.
const SURELY_ALIVE: u64 = 1_000_000;

impl Document {
    /// Lets the first waiters in, each for its grant, as long as they fit. Answers whether one was let in.
    ///
    /// A waiter whose process does not listen is removed, but only where it would be let in, because only a push shows
    /// that it is dead.
    pub(super) fn serve(&mut self, around: &mut Around<'_>) -> bool {
        let mut gave = false;
        // The grant of the last waiter that was let in, if it may be dead.
        let mut doubtful: Option<Millis> = None;
        while let Some(head) = self.queue.first().copied()
            && self.fits(head.token)
        {
            self.queue.remove(0);
            if !around.hears(head.token) {
                continue;
            }
            let grant = head.grant;
            self.enter(head.token, around.now_ms() + grant);
            let fence = around.next_fence();
            around.tell(head.token, News::Given { grant, fence });
            gave = true;
            doubtful = head.waited.is_long(around.now.0).then_some(grant);
        }
        // If the new owner is dead after all, the next ones ask when its grant ends.
        if let Some(grant) = doubtful {
            self.tell_next(grant, around);
        }
        gave
    }
}

impl Waited {
    /// Answers whether the waiter may have died since it asked. Where the clock was set back, nothing is known of its age.
    fn is_long(self, now: u64) -> bool {
        let Waited::Since(arrival) = self;
        now.checked_sub(arrival)
            .is_none_or(|age| age > SURELY_ALIVE)
    }
}
