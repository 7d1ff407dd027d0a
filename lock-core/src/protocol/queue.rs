//! The queue of a key.

use super::{Around, Document, Millis, News, Waited, Waiter};
use crate::base::token::Token;

/// How much longer than the key its queue lasts.
const QUEUE_OUTLIVES: Millis = 60_000;
/// The second waiter asks so much later than the first one. A stopped process then delays the others by this time only.
const SECOND_WAITER: Millis = 2_000;

impl Document {
    /// Puts a waiter at the end of the queue, or leaves it where it is. Returns whether it has a place.
    ///
    /// A server without memory gives no places and confirms none. A caller without a place asks again.
    pub(crate) fn enter_queue(&mut self, token: Token, grant: Millis, around: &Around<'_>) -> bool {
        let stands = self.queue.iter().any(|waiter| waiter.token == token);
        if around.has_room && !stands {
            // The order of arrival holds also when the clock has been set back.
            let next = self.queue.last().map_or(0, |last| last.waited.next_place());
            self.queue.push(Waiter {
                token,
                grant,
                waited: Waited::Since(around.now.0.max(next)),
            });
        } else if around.has_room {
            self.answer(token);
        }
        let left = self.left(around.now_ms()).unwrap_or(0);
        self.queue_ends = around.now_ms() + left + QUEUE_OUTLIVES;
        around.has_room
    }

    /// Notes that a waiter that was asked still waits.
    fn answer(&mut self, token: Token) {
        for waiter in &mut self.queue {
            if let Waited::Asked(at) = waiter.waited
                && waiter.token == token
            {
                waiter.waited = Waited::Answered(at);
            }
        }
    }

    pub(crate) fn leave_queue(&mut self, token: Token) {
        self.queue.retain(|waiter| waiter.token != token);
    }

    /// Returns the time until the key ends. `None`: the key is free.
    pub(crate) fn left(&self, now: Millis) -> Option<Millis> {
        self.ends().map(|ends| ends.saturating_sub(now))
    }

    /// Tells the first two waiters that listen when to ask again, and removes the dead ones before them.
    pub(crate) fn tell_next(&mut self, after: Millis, around: &mut Around<'_>) {
        let mut told = 0;
        while told < 2
            && let Some(waiter) = self.queue.get(told).copied()
        {
            if around.hears(waiter.token) {
                let after = after + told as u64 * SECOND_WAITER;
                let grant = waiter.grant;
                around.tell(waiter.token, News::Next { grant, after });
                told += 1;
            } else {
                self.queue.remove(told);
            }
        }
    }

    /// Tells all waiters to ask now, and empties the queue.
    pub(crate) fn tell_all(&mut self, around: &mut Around<'_>) {
        for Waiter { token, grant, .. } in std::mem::take(&mut self.queue) {
            around.tell(token, News::Next { grant, after: 0 });
        }
    }
}

impl Waited {
    /// Returns the lowest number for the waiter behind this one. Waiters that were asked are at the head of the queue.
    fn next_place(self) -> u64 {
        match self {
            Waited::Since(arrival) => arrival + 1,
            Waited::Asked(_) | Waited::Answered(_) => 0,
        }
    }
}
