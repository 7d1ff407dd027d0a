//! Taking a key, or standing in its queue.

use super::{Acquire, Around, Document, Phase, Refused, Reply};

impl Document {
    pub(super) fn acquire(&mut self, ask: &Acquire, around: &mut Around<'_>) -> Reply {
        if let Some(before) = ask.replaces
            && self.remove(before.token)
        {
            // Waiters come before the process that releases the key.
            self.leave_queue(ask.token);
            around.raise(before.fence);
            around.used = before.fence.unwrap_or(0);
            self.serve(around);
        }
        let may_have_it = match &self.phase {
            Phase::Free => true,
            Phase::Held(hold) => hold.token == ask.token,
            Phase::Closed(_) => false,
        };
        if !may_have_it {
            return Reply::Busy(self.refuse(ask, around));
        }
        if !around.has_room {
            return Reply::NoRoom;
        }
        self.leave_queue(ask.token);
        // A copy of an earlier question may arrive when the lease has been extended. So a lease is only lengthened.
        self.enter(ask.token, around.now_ms() + ask.ttl);
        Reply::Granted(around.next_fence())
    }

    /// Refuses a caller, and lets it enter the queue if it waits. No caller waits beside a record, which is an answer.
    fn refuse(&mut self, ask: &Acquire, around: &Around<'_>) -> Refused {
        let waits = ask.waits && !self.has_record();
        Refused {
            left: self.left(around.now_ms()),
            queued: waits && self.enter_queue(ask.token, ask.grant, around),
        }
    }
}
