//! The end of a lease or of a wait, in each of its ways.

use std::sync::Arc;

use super::{Around, Closed, Document, End, Ended, Millis, Phase, Reply, Way};
use crate::base::record::StoredRecord;
use crate::base::token::Token;

/// A release tells the waiters if the key ends sooner than they know by more than this time, in milliseconds.
pub(crate) const WORTH_TELLING: Millis = 1_000;

impl Document {
    pub(crate) fn end(&mut self, end: &End, around: &mut Around<'_>) -> Reply {
        match &end.way {
            Way::Release => self.release(end, around),
            Way::Leave => self.leave(end, around),
            Way::Vacate(gap) => self.vacate(end, *gap, around),
            Way::Cool { span, until } => {
                let until = (*until).max(around.now_ms() + span);
                self.cool(end, until, around)
            }
            Way::Remember {
                record,
                lifetime,
                ttl,
            } => {
                let until = around.now_ms() + lifetime;
                self.remember(end, record, until, *ttl, around)
            }
        }
    }

    fn release(&mut self, end: &End, around: &mut Around<'_>) -> Reply {
        self.settle_shares(around.now_ms());
        let Some(sooner) = self.remove(end.token) else {
            return self.leave(end, around);
        };
        // A release needs no memory, because it deletes first.
        around.mark = around.mark.max(end.fence.unwrap_or(0));
        let gave = self.serve_waiters(around);
        if let Some(left) = self.left(around.now_ms())
            && !gave
            && sooner > WORTH_TELLING
        {
            // The waiters count on a later end.
            self.tell_next(left, around);
        }
        let how = Ended::Yes;
        Reply::Ended { how, gave }
    }

    fn leave(&mut self, end: &End, around: &mut Around<'_>) -> Reply {
        self.settle_shares(around.now_ms());
        let how = self.taken_by_others();
        self.leave_queue(end.token);
        around.used = end.fence.unwrap_or(0);
        let gave = self.serve_waiters(around);
        Reply::Ended { how, gave }
    }

    fn vacate(&mut self, end: &End, gap: Millis, around: &mut Around<'_>) -> Reply {
        if !self.free(end.token) {
            return ended(self.taken_by_others());
        }
        around.raise(end.fence);
        self.tell_next(gap, around);
        ended(Ended::Yes)
    }

    /// Replaces the token by a cooldown, and tells the waiters, because the key becomes free at another time than they expect.
    ///
    /// A second copy tells them again, because there may be other waiters.
    fn cool(&mut self, end: &End, until: Millis, around: &mut Around<'_>) -> Reply {
        let now = around.now_ms();
        if let Some(Closed {
            until,
            record: None,
            ..
        }) = self.closed_by(end.token)
        {
            let left = until.saturating_sub(now);
            self.tell_next(left, around);
            return ended(Ended::Yes);
        }
        if !self.free(end.token) {
            return self.not_ours(end.token);
        }
        // A cooldown needs no memory, because it changes the end of the key first.
        around.has_room |= until > now;
        around.raise(end.fence);
        self.leave_queue(end.token);
        let mut after = 0;
        if until > now {
            self.phase = Phase::Closed(Closed {
                of: end.token,
                until,
                record: None,
            });
            after = until - now;
        }
        self.tell_next(after, around);
        ended(Ended::Yes)
    }

    /// Replaces the token by a record, and tells all waiters, because the record is their answer.
    fn remember(
        &mut self,
        end: &End,
        record: &Arc<StoredRecord>,
        until: Millis,
        ttl: Millis,
        around: &mut Around<'_>,
    ) -> Reply {
        let token = end.token;
        if self
            .closed_by(token)
            .is_some_and(|closed| closed.record.is_some())
        {
            return ended(Ended::Yes);
        }
        let Some(hold) = self.hold_of(token) else {
            return self.not_ours(token);
        };
        if !around.has_room {
            hold.ends = around.now_ms() + ttl;
            return Reply::NoRoom;
        }
        self.phase = Phase::Closed(Closed {
            of: token,
            until,
            record: Some(Arc::clone(record)),
        });
        around.raise(end.fence);
        self.tell_all(around);
        ended(Ended::Yes)
    }

    pub(crate) fn forget(&mut self) -> Reply {
        match &self.phase {
            Phase::Free => Reply::Done(Ended::Absent),
            Phase::Held(_) | Phase::Shared(_) => Reply::Done(Ended::Other),
            Phase::Closed(closed) => {
                let of = closed.of;
                self.phase = Phase::Free;
                Reply::Forgotten(of)
            }
        }
    }

    /// Returns the record or the cooldown of an owner that has ended.
    fn closed_by(&self, token: Token) -> Option<&Closed> {
        match &self.phase {
            Phase::Closed(closed) if closed.of == token => Some(closed),
            _ => None,
        }
    }

    /// Also removes the caller from the queue, because a caller without its lease may still have a place there.
    fn not_ours(&mut self, token: Token) -> Reply {
        let how = self.taken_by_others();
        self.leave_queue(token);
        ended(how)
    }

    pub(crate) fn taken_by_others(&self) -> Ended {
        match self.is_free() {
            true => Ended::Absent,
            false => Ended::Other,
        }
    }
}

fn ended(how: Ended) -> Reply {
    Reply::Ended { how, gave: false }
}
