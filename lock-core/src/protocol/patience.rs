//! The waiter at the head of the queue, where it alone keeps a share out.
//!
//! Its process may be stopped or dead. So it is asked whether it still waits, and answers by a question of its own. If it
//! has not done so within its grant, all waiters of its process leave the queue.

use super::serve::Serving;
use super::{Around, Document, Millis, News, Waited, Waiter};

/// The server does not ask a new waiter for this time.
const NEWCOMER: Millis = 1_000;

impl Document {
    /// Returns whether the head of the queue is dead or stopped. Asks it, if nothing is known of it.
    pub(crate) fn is_gone(
        &mut self,
        head: &Waiter,
        serving: &mut Serving,
        around: &mut Around<'_>,
    ) -> bool {
        let Some((caller, _)) = serving.caller else {
            return false;
        };
        if caller == head.token || !self.fits(caller) {
            return false;
        }
        // If the clock was set back, the time is unknown.
        let (age, patience, may_ask) = match head.waited {
            Waited::Since(arrival) => (around.now.0.checked_sub(arrival), NEWCOMER, true),
            Waited::Asked(at) => (since(at, around), head.grant, false),
            Waited::Answered(at) => (since(at, around), head.grant, true),
        };
        let left = age.and_then(|age| (patience * 1000).checked_sub(age));
        if let Some(left) = left.filter(|left| *left > 0) {
            serving.again = Some(left.div_ceil(1000));
            return false;
        }
        if (may_ask || age.is_none()) && around.hears(head.token) {
            let grant = head.grant;
            around.tell(head.token, News::Next { grant, after: 0 });
            if around.has_room {
                self.queue[0].waited = Waited::Asked(around.now_ms());
            }
            serving.again = Some(grant);
            return false;
        }
        // The process of the caller runs, so only the head is removed then.
        if head.token.address() != caller.address() {
            serving.silent = Some(head.token.address());
        }
        true
    }
}

/// The time since then in microseconds.
fn since(at: Millis, around: &Around<'_>) -> Option<u64> {
    Some(around.now_ms().checked_sub(at)? * 1000)
}
