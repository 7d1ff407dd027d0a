//! Taking a key, or standing in its queue.

use super::serve::Serving;
use super::{Acquire, Around, Document, Millis, Phase, Refused, Reply};

/// How much later a waiter asks that has others before it.
const BEHIND_OTHERS: Millis = 100;

impl Document {
    pub(crate) fn acquire(&mut self, ask: &Acquire, around: &mut Around<'_>) -> Reply {
        match ask.token.share() {
            Some(_) => self.acquire_share(ask, around),
            None => self.acquire_lock(ask, around),
        }
    }

    fn acquire_lock(&mut self, ask: &Acquire, around: &mut Around<'_>) -> Reply {
        if let Some(before) = ask.replaces
            && self.free(before)
        {
            // Waiters come before the process that releases the key.
            self.leave_queue(ask.token);
            around.raise(ask.used);
            around.used = ask.used.unwrap_or(0);
            self.serve_waiters(around);
        }
        if !self.may_be_had_by(ask.token) {
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

    /// Lets a share in: strictly in the order of arrival. Each question lets in the waiters before it that fit.
    fn acquire_share(&mut self, ask: &Acquire, around: &mut Around<'_>) -> Reply {
        let ends = around.now_ms() + ask.ttl;
        self.settle_shares(around.now_ms());
        around.raise(ask.used);
        around.used = ask.used.unwrap_or(0);
        let mut serving = Serving {
            caller: Some((ask.token, ask.ttl)),
            ..Serving::default()
        };
        if self.is_inside(ask.token) {
            // The end of a key needs no memory, but that of one share among several does.
            if !around.has_room && matches!(self.phase, Phase::Shared(_)) {
                return Reply::NoRoom;
            }
            self.enter(ask.token, ends);
            self.leave_queue(ask.token);
            let fence = around.next_fence();
            self.serve(&mut serving, around);
            return Reply::Granted(fence);
        }
        self.serve(&mut serving, around);
        if let Some(fence) = serving.fence {
            return Reply::Granted(fence);
        }
        // A newcomer enters beside others only if no client waits.
        if self.queue.is_empty() && self.fits(ask.token) {
            if !around.has_room {
                return Reply::NoRoom;
            }
            self.enter(ask.token, ends);
            return Reply::Granted(around.next_fence());
        }
        let refused = self.refuse(ask, around);
        if refused.queued {
            self.serve(&mut serving, around);
            if let Some(fence) = serving.fence {
                return Reply::Granted(fence);
            }
        }
        Reply::Busy(self.seen_by_share(ask, &refused, &serving, around))
    }

    /// Refuses a caller, and lets it enter the queue if it waits. No caller waits beside a record, which is an answer.
    pub(crate) fn refuse(&mut self, ask: &Acquire, around: &Around<'_>) -> Refused {
        let waits = ask.waits && !self.has_record();
        Refused {
            left: self.left(around.now_ms()),
            queued: waits && self.enter_queue(ask.token, ask.grant, around),
            is_full: false,
        }
    }

    /// The refusal of a share, which may enter when the first of the others ends.
    fn seen_by_share(
        &self,
        ask: &Acquire,
        refused: &Refused,
        serving: &Serving,
        around: &Around<'_>,
    ) -> Refused {
        let now = around.now_ms();
        let is_beside_its_kind = self.is_beside_its_kind(ask.token);
        let mut left = self.left(now);
        if let Phase::Shared(shares) = &self.phase
            && is_beside_its_kind
        {
            left = shares.earliest().map(|ends| ends.saturating_sub(now));
        }
        if let Some(again) = serving.again.filter(|_| refused.queued) {
            // The first ones ask first, and let in those behind them.
            let place = self.queue.iter().position(|it| it.token == ask.token);
            let places = place.map_or(0, |place| place as u64).saturating_sub(1);
            let places = if places < 16 { places } else { 100 };
            left = left.map(|left| left.min(again + BEHIND_OTHERS * places));
        }
        Refused {
            left,
            is_full: is_beside_its_kind && self.is_full_for(ask.token),
            ..*refused
        }
    }
}
