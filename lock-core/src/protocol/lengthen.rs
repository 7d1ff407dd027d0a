//! Renewals, and replacements of one token by another.

use super::{Around, Document, Ended, Millis, Phase, Reply};
use crate::base::token::Token;

/// No lease lasts longer. A later end is one that was set before the clock was set back.
const LONGEST: Millis = 24 * 60 * 60 * 1000;

impl Document {
    /// Lengthens a lease. It never shortens one, because a renewal may arrive behind a later, longer one.
    pub(crate) fn extend(&mut self, token: Token, ttl: Millis, around: &Around<'_>) -> Reply {
        let now = around.now_ms();
        let how = self.taken_by_others();
        if let Some(hold) = self.hold_of(token) {
            hold.ends = lengthened(hold.ends, ttl, now);
            return Reply::Done(Ended::Yes);
        }
        if let Phase::Shared(shares) = &mut self.phase
            && let Some(place) = shares.place_of(token)
            && now <= place.ends
        {
            let ends = lengthened(place.ends, ttl, now);
            place.ends = ends;
            // The key ends with the latest of its shares.
            shares.ends = shares.ends.min(now + LONGEST).max(ends);
            return Reply::Done(Ended::Yes);
        }
        Reply::Done(how)
    }

    /// Replaces a token. The key is never free between the two, so the fencing token stays, and the waiters get no message.
    pub(crate) fn swap(
        &mut self,
        from: Token,
        to: Token,
        ttl: Millis,
        fence: Option<u64>,
        around: &mut Around<'_>,
    ) -> Reply {
        let ends = around.now_ms() + ttl;
        let how = self.taken_by_others();
        if self.hold_of(from).is_none() && self.hold_of(to).is_none() {
            return Reply::Done(how);
        }
        if !around.has_room {
            return Reply::NoRoom;
        }
        around.raise(fence);
        // A second copy finds the second token, and only lengthens it.
        self.free(from);
        self.enter(to, ends);
        Reply::Done(Ended::Yes)
    }
}

/// Returns the end of a lease after its renewal.
fn lengthened(ends: Millis, ttl: Millis, now: Millis) -> Millis {
    match ends < now + ttl || ends > now + LONGEST {
        true => now + ttl,
        false => ends,
    }
}
