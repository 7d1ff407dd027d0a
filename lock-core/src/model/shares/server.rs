//! The scripts of the server.

use super::fault::ShareFault;
use super::world::{
    ClientPhase, GRANT, Id, KeyValue, Message, ShareLimits, ShareWorld, ShareWrong, TOKENS, Time,
    Wanted,
};

/// The answer to a question: the fencing token, or the time to ask again.
pub(super) type Answer = Result<u16, Time>;

impl ShareWorld {
    /// Forgets a key whose end has passed.
    pub(super) fn expire(&mut self) {
        self.key = self.key.filter(|(_, end)| self.now < *end);
    }

    fn purge(&mut self, limits: &ShareLimits) {
        if limits.has(ShareFault::EndedSharesCount) {
            return;
        }
        let now = self.now;
        for end in &mut self.shares {
            if *end <= now {
                *end = 0;
            }
        }
    }

    fn count(&self) -> usize {
        match self.key {
            None => 0,
            Some((KeyValue::Shared, _)) => self.set().count(),
            Some((KeyValue::Token(_), _)) => 1,
        }
    }

    /// Returns whether the client may have the lock beside those that have it. `limit`: in place of its own.
    fn fits(&self, id: Id, limits: &ShareLimits, limit: Option<u8>) -> bool {
        match (self.key, limits.wanted(id)) {
            (None, _) => true,
            (Some(_), Wanted::Exclusive) => false,
            (Some((KeyValue::Token(owner), _)), _) if limits.is_exclusive(owner) => false,
            (Some(_), Wanted::Share(own)) => {
                self.is_alike(id, limits) && self.count() < usize::from(limit.unwrap_or(own))
            }
        }
    }

    /// Returns whether the shares that are inside are of the client's kind: readers, or permits.
    fn is_alike(&self, id: Id, limits: &ShareLimits) -> bool {
        let inside = match self.key {
            Some((KeyValue::Token(owner), _)) => Some(owner),
            _ => self.set().map(|(inside, _)| inside).next(),
        };
        limits.has(ShareFault::ReadersBesidePermits)
            || inside.is_none_or(|inside| limits.is_reader(inside) == limits.is_reader(id))
    }

    fn clear_set(&mut self, limits: &ShareLimits) {
        if !limits.has(ShareFault::SetOutlivesItsKey) {
            self.shares = Default::default();
        }
    }

    /// Writes a lease.
    fn put(&mut self, id: Id, end: Time, limits: &ShareLimits) -> Result<(), ShareWrong> {
        if let (Some(_), Wanted::Share(limit)) = (self.key, limits.wanted(id))
            && self.count() >= usize::from(limit)
        {
            return Err(ShareWrong::TooManyAdmitted);
        }
        let cuts = limits.has(ShareFault::EndOfTheKeyIsCut);
        let later = |ends: Time| if cuts { end } else { ends.max(end) };
        match self.key {
            None => {
                self.key = Some((KeyValue::Token(id), end));
                self.clear_set(limits);
            }
            // A late copy of its first attempt has found the key free.
            Some((KeyValue::Token(owner), ends))
                if owner == id && !limits.has(ShareFault::EnteringCutsItsOwnShare) =>
            {
                self.key = Some((KeyValue::Token(owner), ends.max(end)));
            }
            Some((KeyValue::Shared, ends)) => {
                let share = self.share(id);
                *share = end.max(*share);
                self.key = Some((KeyValue::Shared, later(ends)));
            }
            Some((KeyValue::Token(lone), ends)) => {
                self.clear_set(limits);
                if !limits.has(ShareFault::FirstShareForgotten) {
                    *self.share(lone) = ends;
                }
                *self.share(id) = end;
                self.key = Some((KeyValue::Shared, later(ends)));
            }
        }
        Ok(())
    }

    /// Takes away the lease of a token. Returns whether it had one.
    fn take(&mut self, id: Id, limits: &ShareLimits) -> bool {
        let has_share = self.end_of(id) > 0;
        match self.key {
            Some((KeyValue::Token(owner), _)) if owner == id => {
                self.key = None;
                true
            }
            Some((KeyValue::Shared, _)) if has_share => {
                *self.share(id) = 0;
                let latest = self.set().map(|(_, end)| end).max();
                let latest = latest.filter(|_| !limits.has(ShareFault::FirstReleaseFrees));
                self.key = latest.map(|end| (KeyValue::Shared, end));
                true
            }
            _ => false,
        }
    }

    pub(super) fn listens(&self, id: Id) -> bool {
        self.phase(id) != ClientPhase::Dead
    }

    fn fence(&mut self) -> u16 {
        let clock = u16::from(self.now) * TOKENS;
        if self.mark < clock {
            return clock;
        }
        self.mark += 1;
        self.mark
    }

    fn raise(&mut self, fence: u16, limits: &ShareLimits) {
        if !limits.has(ShareFault::MarkNotRaised) {
            self.mark = self.mark.max(fence);
        }
    }

    pub(super) fn push(&mut self, message: Message) {
        if !self.clients[usize::from(message.client())].is_over() {
            self.net.push(message);
        }
    }

    fn leave_queue(&mut self, id: Id) {
        self.queue.retain(|other| *other != id);
        self.asked = self.asked.filter(|(asked, ..)| *asked != id);
    }

    /// Gives the lock to the first waiters as long as they fit. `me`: the client whose question this is, with its ttl;
    /// it needs no push. Returns its fencing token. `limit`: see [`fits`](Self::fits).
    fn admit(
        &mut self,
        me: Option<Id>,
        limit: Option<u8>,
        limits: &ShareLimits,
    ) -> Result<Option<u16>, ShareWrong> {
        let mut mine = None;
        while let Some(head) = self.queue.first().copied() {
            let is_me = me == Some(head);
            if !self.fits(head, limits, limit) {
                if let Some(me) = me
                    && !is_me
                    && (!self.listens(head) || self.fits(me, limits, None) && self.is_silent(head))
                {
                    self.leave_queue(head);
                    continue;
                }
                break;
            }
            self.leave_queue(head);
            if is_me {
                self.put(head, self.now + limits.ttl(head), limits)?;
                mine = Some(self.fence());
                continue;
            }
            let end = self.now + GRANT;
            self.put(head, end, limits)?;
            if self.listens(head) {
                let fence = self.fence();
                self.push(match limits.is_exclusive(head) {
                    true => Message::Given(head, end, fence),
                    false => Message::LetIn(head, end, fence),
                });
            } else if limits.has(ShareFault::UndoneByDeletion) {
                self.key = None;
            } else {
                self.take(head, limits);
            }
        }
        Ok(mine)
    }

    /// The first attempt: `SET NX`.
    pub(super) fn first(&mut self, id: Id, limits: &ShareLimits) -> Result<Answer, ShareWrong> {
        match self.key {
            None => {
                self.put(id, self.now + limits.ttl(id), limits)?;
                Ok(Ok(self.fence()))
            }
            Some((KeyValue::Token(owner), _)) if owner == id => self.ask(id, limits),
            Some((_, end)) => Ok(Err(end)),
        }
    }

    /// The question that queues.
    pub(super) fn ask(&mut self, id: Id, limits: &ShareLimits) -> Result<Answer, ShareWrong> {
        let end = self.now + limits.ttl(id);
        if limits.is_exclusive(id) {
            return self.ask_exclusively(id, end, limits);
        }
        self.purge(limits);
        if self.lengthen(id, end) {
            self.leave_queue(id);
            let fence = self.fence();
            if !limits.has(ShareFault::RepeatedQuestionAdmitsNone) {
                self.admit(None, None, limits)?;
            }
            return Ok(Ok(fence));
        }
        if limits.has(ShareFault::NewcomersFirst) && self.fits(id, limits, None) {
            let waits = |other: &Id| limits.is_exclusive(*other) && self.listens(*other);
            if self.key.is_some() && self.queue.iter().any(waits) {
                return Err(ShareWrong::NewcomerBeforeWaiters);
            }
            self.put(id, end, limits)?;
            self.leave_queue(id);
            return Ok(Ok(self.fence()));
        }
        self.stands_in_line(id);
        if let Some(fence) = self.admit(Some(id), None, limits)? {
            return Ok(Ok(fence));
        }
        let again = self.asked.map_or(Time::MAX, |(_, at, _)| at + GRANT);
        Ok(Err(self.next_end().min(again)))
    }

    /// The acquire of a plain lock.
    fn ask_exclusively(
        &mut self,
        id: Id,
        end: Time,
        limits: &ShareLimits,
    ) -> Result<Answer, ShareWrong> {
        match self.key {
            None => self.put(id, end, limits)?,
            Some((KeyValue::Token(owner), ends)) if owner == id => {
                self.key = Some((KeyValue::Token(owner), ends.max(end)));
            }
            Some((_, ends)) => {
                self.stands_in_line(id);
                return Ok(Err(ends));
            }
        }
        self.leave_queue(id);
        Ok(Ok(self.fence()))
    }

    /// Lengthens what the token has. Returns false if it has nothing.
    fn lengthen(&mut self, id: Id, end: Time) -> bool {
        let has_share = self.end_of(id) > 0;
        match self.key {
            Some((KeyValue::Token(owner), ends)) if owner == id => {
                self.key = Some((KeyValue::Token(owner), ends.max(end)));
                true
            }
            Some((KeyValue::Shared, ends)) if has_share => {
                let share = self.share(id);
                *share = end.max(*share);
                self.key = Some((KeyValue::Shared, ends.max(end)));
                true
            }
            _ => false,
        }
    }

    /// The time at which room may be free: the earliest end of a share.
    fn next_end(&self) -> Time {
        let end = self.key.map_or(0, |(_, end)| end);
        match self.key {
            Some((KeyValue::Shared, _)) => self.set().map(|(_, end)| end).min().unwrap_or(end),
            _ => end,
        }
    }

    /// The release by the script of shares: of a share, an exclusive owner, or a waiter.
    pub(super) fn release(
        &mut self,
        id: Id,
        fence: u16,
        limits: &ShareLimits,
    ) -> Result<(), ShareWrong> {
        if limits.has(ShareFault::EndAdmitsOne) && limits.is_exclusive(id) {
            self.plain_release(id, fence, limits);
            return Ok(());
        }
        self.purge(limits);
        let had = self.take(id, limits);
        let mut limit = None;
        if had {
            self.raise(fence, limits);
            if let Wanted::Share(own) = limits.wanted(id)
                && limits.has(ShareFault::LimitOfTheReleaser)
            {
                limit = Some(own);
            }
        }
        self.leave_queue(id);
        if limits.has(ShareFault::LeavingAdmitsNone) && !had {
            return Ok(());
        }
        self.admit(None, limit, limits)?;
        if let (Some(head), Some((KeyValue::Shared, end))) = (self.queue.first().copied(), self.key)
        {
            let at = match limits.is_exclusive(head) {
                true => end,
                false => self.next_end(),
            };
            self.push(Message::Next(head, at));
        }
        Ok(())
    }

    /// The release of a plain lock, which hands a free key to the first waiter, whatever it waits for.
    pub(super) fn plain_release(&mut self, id: Id, fence: u16, limits: &ShareLimits) {
        match self.key {
            Some((KeyValue::Token(owner), _)) if owner == id => {
                self.raise(fence, limits);
                self.key = None;
            }
            _ => self.leave_queue(id),
        }
        while self.key.is_none() && !self.queue.is_empty() {
            let head = self.queue[0];
            self.leave_queue(head);
            if self.listens(head) {
                let end = self.now + GRANT;
                self.key = Some((KeyValue::Token(head), end));
                let fence = self.fence();
                self.push(Message::Given(head, end, fence));
            }
        }
    }

    /// The bulk renewal: lengthens, and never creates.
    pub(super) fn renew(&mut self, id: Id, limits: &ShareLimits) -> Result<bool, ShareWrong> {
        let end = self.now + limits.ttl(id);
        let has_share = self.end_of(id) > self.now;
        let renewed = match self.key {
            Some((KeyValue::Token(owner), ends)) if owner == id => {
                self.key = Some((KeyValue::Token(owner), ends.max(end)));
                true
            }
            Some((KeyValue::Shared, ends)) if has_share => {
                let share = self.share(id);
                *share = end.max(*share);
                let lengthened = *share;
                let ends = match limits.fault {
                    Some(ShareFault::EndOfTheKeyIsCut) => end,
                    Some(ShareFault::RenewalForgetsTheKey) => ends,
                    _ => ends.max(lengthened),
                };
                self.key = Some((KeyValue::Shared, ends));
                true
            }
            _ => false,
        };
        let client = self.clients[usize::from(id)];
        let believes = client.phase == ClientPhase::Holding && self.now < client.until;
        let overtaken = believes && client.fence < self.exclusive_fence;
        if renewed && overtaken && !limits.is_exclusive(id) {
            return Err(ShareWrong::OvertakenShareRenewed);
        }
        Ok(renewed)
    }

    /// Returns whether the first waiter would fit, if shares that have ended are not counted.
    pub(super) fn leaves_room(&self, limits: &ShareLimits) -> bool {
        let Some(head) = self
            .queue
            .first()
            .copied()
            .filter(|head| self.listens(*head))
        else {
            return false;
        };
        let live = self.set().filter(|(_, end)| *end > self.now).count();
        match (self.key, limits.wanted(head)) {
            _ if self.fits(head, limits, None) => true,
            (Some((KeyValue::Shared, _)), Wanted::Share(limit)) => {
                self.is_alike(head, limits) && live < usize::from(limit)
            }
            _ => false,
        }
    }
}
