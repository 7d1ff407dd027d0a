//! The server: the protocol that the embedded store runs, with a clock that stands still between two ticks.

use super::fault::ShareFault;
use super::world::{
    ClientPhase, GRANT, Id, Message, ShareLimits, ShareWorld, ShareWrong, Time, Wanted,
};
use super::wrong_server;
use crate::base::clock::ServerTime;
use crate::base::share::ShareLimit;
use crate::base::token::Token;
use crate::protocol::{
    Acquire, Around, Document, End, Ended, Hold, News, Operation, Phase, Push, Reply, Waited, Way,
    step,
};

/// The answer to a question: the fencing token, or the time to ask again.
pub(super) type Answer = Result<u64, Time>;

/// A tick in milliseconds.
const TICK: u64 = 1_000;
/// The ticks of the server's clock before the first one of the model.
const START: u64 = 1_000;

/// Returns a span in milliseconds. The server keeps a key in its whole last millisecond, and the end of the first of several
/// shares is one later, so a lease is two shorter than its ticks.
pub(super) fn millis(ticks: Time) -> u64 {
    u64::from(ticks) * TICK - 2
}

/// Returns the tick at which a lease with this end is over.
pub(super) fn tick(ends: u64) -> Time {
    Time::try_from(ends.div_ceil(TICK) - START).unwrap_or(Time::MAX)
}

pub(super) fn id_of(token: Token) -> Id {
    token.bytes()[23]
}

impl ShareLimits {
    pub(super) fn token(&self, id: Id) -> Token {
        let mut bytes = [0; 24];
        // No process has the address 0.
        bytes[0] = 1 + self.owner_of(id).unwrap_or(id);
        bytes[23] = id;
        let share = match self.wanted(id) {
            Wanted::Exclusive => None,
            _ if self.is_reader(id) => Some(ShareLimit::READERS),
            Wanted::Share(count) => ShareLimit::permits(count.into()).ok(),
        };
        Token::from_bytes(bytes).with_share(share)
    }

    fn acquire(&self, id: Id, waits: bool) -> Operation {
        Operation::Acquire(Acquire {
            token: self.token(id),
            ttl: millis(self.ttl(id)),
            grant: millis(GRANT),
            waits,
            replaces: None,
            used: None,
        })
    }

    fn release(&self, id: Id, fence: u64) -> Operation {
        Operation::End(End {
            token: self.token(id),
            // A waiter that gives up has none.
            fence: (fence > 0).then_some(fence),
            way: Way::Release,
        })
    }
}

impl ShareWorld {
    pub(super) fn millis(&self) -> u64 {
        (START + u64::from(self.now)) * TICK
    }

    /// Returns the tick after a span of milliseconds.
    fn tick_after(&self, span: u64) -> Time {
        tick(self.millis() + span)
    }

    /// Forgets a key whose end has passed.
    pub(super) fn expire(&mut self) {
        let now = self.millis();
        self.document.settle(now);
    }

    pub(super) fn listens(&self, id: Id) -> bool {
        self.phase(id) != ClientPhase::Dead
    }

    fn push(&mut self, message: Message) {
        if !self.clients[usize::from(message.client())].is_over() {
            self.net.push(message);
        }
    }

    /// Runs an operation without a seeded fault. Returns the reply and the messages.
    pub(super) fn step(
        &mut self,
        operation: &Operation,
        limits: &ShareLimits,
    ) -> (Reply, Vec<Push>) {
        let clients = &self.clients;
        let is_dead = |id: Id| clients[usize::from(id)].phase == ClientPhase::Dead;
        let mut around = Around {
            now: ServerTime(self.millis() * 1_000),
            mark: self.mark,
            used: 0,
            has_room: true,
            listens: &|address| {
                let mut dead = limits.ids().filter(|id| is_dead(*id));
                dead.all(|id| limits.token(id).address() != address)
            },
            pushes: Vec::new(),
        };
        let reply = step(&mut self.document, operation, &mut around);
        self.mark = around.mark;
        (reply, around.pushes)
    }

    /// Runs an operation of a script that knows no shares. A token is that of a lock there, and a key with several shares is
    /// another owner's.
    fn step_plainly(
        &mut self,
        mut operation: Operation,
        limits: &ShareLimits,
    ) -> (Reply, Vec<Push>) {
        if let Operation::Acquire(Acquire { token, .. }) | Operation::End(End { token, .. }) =
            &mut operation
        {
            *token = token.with_share(None);
        }
        let before = self.document.phase.clone();
        let several = Hold {
            token: Token::NOBODY,
            ends: self.document.ends().unwrap_or(0),
        };
        if let Phase::Shared(_) = before {
            self.document.phase = Phase::Held(several);
        }
        self.rename(|id| limits.token(id).with_share(None));
        let done = self.step(&operation, limits);
        self.rename(|id| limits.token(id));
        if self.document.phase == Phase::Held(several) {
            self.document.phase = before;
        }
        done
    }

    /// Replaces each token, where it is not in a set of several shares.
    fn rename(&mut self, token: impl Fn(Id) -> Token) {
        for waiter in &mut self.document.queue {
            waiter.token = token(id_of(waiter.token));
        }
        if let Phase::Held(hold) = &mut self.document.phase
            && hold.token != Token::NOBODY
        {
            hold.token = token(id_of(hold.token));
        }
    }

    /// Runs an operation, checks whom it lets in, and sends its messages. With `plainly` the script knows no shares.
    fn run(
        &mut self,
        operation: Operation,
        plainly: bool,
        limits: &ShareLimits,
    ) -> Result<Reply, ShareWrong> {
        let before = self.document.clone();
        let asks = match &operation {
            Operation::Acquire(ask) if !plainly => Some(ask.token),
            _ => None,
        };
        let (reply, pushes) = match limits.fault {
            _ if plainly => self.step_plainly(operation, limits),
            None => self.step(&operation, limits),
            Some(fault) => wrong_server::run(self, &operation, limits, fault),
        };
        let granted = asks.filter(|_| matches!(reply, Reply::Granted(_)));
        self.check_admitted(before, granted)?;
        self.normalise();
        for Push { token, news, .. } in pushes {
            let id = id_of(token);
            self.push(match news {
                News::Given { grant, fence } => {
                    let end = self.tick_after(grant);
                    match plainly || limits.is_exclusive(id) {
                        true => Message::Given(id, end, fence),
                        false => Message::LetIn(id, end, fence),
                    }
                }
                News::Next { after, .. } => Message::Next(id, self.tick_after(after)),
                News::Forced => unreachable!("no operator is in the model"),
            });
        }
        Ok(reply)
    }

    /// Checks the shares that an operation has let in. `granted`: that of its caller.
    fn check_admitted(
        &self,
        mut before: Document,
        granted: Option<Token>,
    ) -> Result<(), ShareWrong> {
        if let Phase::Shared(shares) = &self.document.phase {
            for (others, place) in (0..).zip(&shares.inside) {
                let limit = place.token.share().map_or(1, ShareLimit::count);
                if others >= limit && !before.is_inside(place.token) {
                    return Err(ShareWrong::TooManyAdmitted);
                }
            }
        }
        let Some(newcomer) = granted.filter(|token| !before.is_free() && !before.is_inside(*token))
        else {
            return Ok(());
        };
        let still_waits = |token: Token| self.document.queue.iter().any(|one| one.token == token);
        let ahead = before.queue.iter().map(|waiter| waiter.token);
        let passed = ahead.take_while(|token| *token != newcomer).any(|token| {
            token.share().is_none() && still_waits(token) && self.listens(id_of(token))
        });
        match passed {
            true => Err(ShareWrong::NewcomerBeforeWaiters),
            false => Ok(()),
        }
    }

    /// Makes states equal whose difference the protocol does not see: the order of the shares inside, and that of the
    /// arrivals in one tick, which their order in the queue says.
    fn normalise(&mut self) {
        if let Phase::Shared(shares) = &mut self.document.phase {
            shares
                .inside
                .sort_unstable_by_key(|place| id_of(place.token));
        }
        for waiter in &mut self.document.queue {
            if let Waited::Since(arrival) = &mut waiter.waited {
                *arrival -= *arrival % (TICK * 1_000);
            }
        }
        // A queue ends long after its key.
        self.document.queue_ends = u64::MAX;
    }

    fn answer(&self, reply: &Reply) -> Answer {
        match reply {
            Reply::Granted(fence) => Ok(*fence),
            Reply::Busy(refused) => Err(self.tick_after(refused.left.unwrap_or(0))),
            reply => unreachable!("{reply:?}"),
        }
    }

    /// The first attempt: `SET NX`, which knows no queue.
    pub(super) fn first(&mut self, id: Id, limits: &ShareLimits) -> Result<Answer, ShareWrong> {
        if self.document.hold_of(limits.token(id)).is_some() {
            return self.ask(id, limits);
        }
        // A late copy leaves the place of its token in the queue.
        let queue = self.document.queue.clone();
        let reply = self.run(limits.acquire(id, false), true, limits)?;
        self.document.queue = queue;
        Ok(self.answer(&reply))
    }

    /// The question that queues.
    pub(super) fn ask(&mut self, id: Id, limits: &ShareLimits) -> Result<Answer, ShareWrong> {
        let reply = self.run(limits.acquire(id, true), false, limits)?;
        Ok(self.answer(&reply))
    }

    /// The release by the script of shares: of a share, an exclusive owner, or a waiter.
    pub(super) fn release(
        &mut self,
        id: Id,
        fence: u64,
        limits: &ShareLimits,
    ) -> Result<(), ShareWrong> {
        let plainly = limits.has(ShareFault::EndAdmitsOne) && limits.is_exclusive(id);
        self.run(limits.release(id, fence), plainly, limits)?;
        Ok(())
    }

    /// The release of a plain lock, which hands a free key to the first waiter, whatever it waits for.
    pub(super) fn plain_release(
        &mut self,
        id: Id,
        fence: u64,
        limits: &ShareLimits,
    ) -> Result<(), ShareWrong> {
        self.run(limits.release(id, fence), true, limits)?;
        Ok(())
    }

    /// The bulk renewal: lengthens, and never creates.
    pub(super) fn renew(&mut self, id: Id, limits: &ShareLimits) -> Result<bool, ShareWrong> {
        let (token, ttl) = (limits.token(id), millis(limits.ttl(id)));
        let reply = self.run(Operation::Extend { token, ttl }, false, limits)?;
        let renewed = reply == Reply::Done(Ended::Yes);
        let client = self.clients[usize::from(id)];
        let believes = client.phase == ClientPhase::Holding && self.now < client.until;
        let overtaken = believes && client.fence < self.exclusive_fence;
        if renewed && overtaken && !limits.is_exclusive(id) {
            return Err(ShareWrong::OvertakenShareRenewed);
        }
        Ok(renewed)
    }

    /// Replaces the owner's token by the reader's. Returns whether the reader has the key then.
    pub(super) fn swap(&mut self, reader: Id, limits: &ShareLimits) -> Result<bool, ShareWrong> {
        let from = limits.token(limits.owner_of(reader).unwrap_or(reader));
        let replaces = self.document.hold_of(from).is_some();
        let swap = Operation::Swap {
            from,
            to: limits.token(reader),
            ttl: millis(limits.ttl(reader)),
            fence: None,
        };
        let reply = self.run(swap, false, limits)?;
        if replaces {
            // Stands for the clock, which goes on between the owner's grant and the next one.
            self.mark = self.mark.max(self.exclusive_fence);
        }
        Ok(reply == Reply::Done(Ended::Yes))
    }

    /// Returns whether the first waiter would fit, if shares that have ended are not counted.
    pub(super) fn leaves_room(&self) -> bool {
        let Some(head) = self.document.queue.first() else {
            return false;
        };
        let now = self.millis();
        let mut document = self.document.clone();
        document.settle_shares(now);
        self.listens(id_of(head.token)) && document.fits(head.token)
    }
}
