//! The state of the model, and its limits.

use super::fault::ShareFault;
use crate::protocol::Document;

/// The most clients of a world.
pub(super) const CLIENTS: usize = 5;
/// For how long a share or a lock is given to a waiter.
pub(super) const GRANT: u8 = 2;

/// A client, and its token.
pub(super) type Id = u8;
/// A point in time.
pub(super) type Time = u8;

/// The lock that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Exclusive,
    /// To stand beside others while fewer than so many are in.
    Share(u8),
}

/// A reader's limit.
pub(super) const READ: Wanted = Wanted::Share(99);

/// The size of the world, and the failures in it.
#[derive(Clone, Debug)]
pub(super) struct ShareLimits {
    /// The lock of each client, and its ttl.
    pub(super) clients: &'static [(Wanted, u8)],
    /// The time at which the clock stops.
    pub(super) ticks: Time,
    pub(super) losses: u8,
    pub(super) doubles: u8,
    pub(super) crashes: u8,
    /// Deletions of the key by a client from outside.
    pub(super) deletions: u8,
    /// Set if waiters and downgrades may be given up.
    pub(super) gives_up: bool,
    /// Whether owners renew, once.
    pub(super) renews: bool,
    /// An owner that may go on as a reader, and this reader, which does not come by itself.
    pub(super) downgrade: Option<(Id, Id)>,
    pub(super) fault: Option<ShareFault>,
}

impl ShareLimits {
    pub(super) fn has(&self, fault: ShareFault) -> bool {
        self.fault == Some(fault)
    }

    pub(super) fn wanted(&self, id: Id) -> Wanted {
        self.clients[usize::from(id)].0
    }

    pub(super) fn ttl(&self, id: Id) -> u8 {
        self.clients[usize::from(id)].1
    }

    pub(super) fn is_exclusive(&self, id: Id) -> bool {
        self.wanted(id) == Wanted::Exclusive
    }

    pub(super) fn is_reader(&self, id: Id) -> bool {
        self.wanted(id) == READ
    }

    /// Returns whether anything can fail.
    pub(super) fn has_failures(&self) -> bool {
        let failures = [self.losses, self.doubles, self.crashes, self.deletions];
        self.gives_up || failures != [0; 4]
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = Id> + use<> {
        (0..).take(self.clients.len())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ClientPhase {
    Idle,
    /// Its first question is on its way.
    First,
    Waiting,
    Holding,
    /// It is to take the place of an owner.
    Swapping,
    Releasing,
    Done,
    Dead,
}

/// The question of a waiter, or the renewal of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Question {
    None,
    Asked,
    Answered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ShareClient {
    pub(super) phase: ClientPhase,
    /// The end of its belief while it holds, and the time to ask again while it waits.
    pub(super) until: Time,
    pub(super) fence: u64,
    pub(super) question: Question,
}

impl ShareClient {
    pub(super) fn new(phase: ClientPhase) -> Self {
        Self {
            phase,
            until: 0,
            fence: 0,
            question: Question::None,
        }
    }

    /// Returns whether no message can reach it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, ClientPhase::Done | ClientPhase::Dead)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Message {
    // To the server, with the time of the sending or the fencing token.
    /// The first attempt: `SET NX`.
    First(Id, Time),
    /// A question that queues.
    Ask(Id, Time),
    /// The release by the script of shares, or a waiter that gives up.
    Release(Id, u64),
    /// The release by the script of a plain lock, which knows no shares.
    PlainRelease(Id, u64),
    Renew(Id, Time),
    /// Replaces the token of an owner by that of this reader.
    Swap(Id, Time),
    // To a client.
    /// A grant of the question of that time.
    Granted(Id, Time, u64),
    /// A refusal, with the time to ask again.
    Refused(Id, Time),
    Renewed(Id, Time, bool),
    Released(Id),
    /// The server has given the lock to a waiter, until then.
    Given(Id, Time, u64),
    /// As `Given`, for a share; all others that may enter have entered.
    LetIn(Id, Time, u64),
    Swapped(Id, Time, bool),
    /// The first waiter is told when to ask.
    Next(Id, Time),
}

impl Message {
    pub(super) fn client(self) -> Id {
        match self {
            Message::First(id, _)
            | Message::Ask(id, _)
            | Message::Release(id, _)
            | Message::PlainRelease(id, _)
            | Message::Renew(id, _)
            | Message::Swap(id, _)
            | Message::Granted(id, ..)
            | Message::Refused(id, _)
            | Message::Renewed(id, ..)
            | Message::Released(id)
            | Message::Given(id, ..)
            | Message::LetIn(id, ..)
            | Message::Swapped(id, ..)
            | Message::Next(id, _) => id,
        }
    }

    pub(super) fn is_for_the_server(self) -> bool {
        matches!(
            self,
            Message::First(..)
                | Message::Ask(..)
                | Message::Release(..)
                | Message::PlainRelease(..)
                | Message::Renew(..)
                | Message::Swap(..)
        )
    }
}

/// A state that must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShareWrong {
    OwnerWithoutKey,
    OwnerOutlivesItsShare,
    ExclusiveBesideAnother,
    ReaderBesidePermit,
    TooManyOwners,
    TooManyAdmitted,
    ExclusiveFenceNotHigher,
    ShareFenceNotHigher,
    RoomIsLeft,
    NewcomerBeforeWaiters,
    OvertakenShareRenewed,
    WaitsForever,
}

#[derive(Clone, Debug, Hash)]
pub(super) struct ShareWorld {
    pub(super) now: Time,
    pub(super) document: Document,
    pub(super) mark: u64,
    pub(super) clients: [ShareClient; CLIENTS],
    /// In order, because their order means nothing.
    pub(super) net: Vec<Message>,
    /// The highest fencing tokens that exclusive owners and shares have used.
    pub(super) exclusive_fence: u64,
    pub(super) share_fence: u64,
    pub(super) losses: u8,
    pub(super) doubles: u8,
    pub(super) crashes: u8,
    pub(super) deletions: u8,
}

impl ShareWorld {
    pub(super) fn new(limits: &ShareLimits) -> Self {
        Self {
            now: 0,
            document: Document {
                queue_ends: u64::MAX,
                ..Document::default()
            },
            mark: 0,
            clients: [ShareClient::new(ClientPhase::Idle); CLIENTS],
            net: Vec::new(),
            exclusive_fence: 0,
            share_fence: 0,
            losses: limits.losses,
            doubles: limits.doubles,
            crashes: limits.crashes,
            deletions: limits.deletions,
        }
    }

    pub(super) fn client(&mut self, id: Id) -> &mut ShareClient {
        &mut self.clients[usize::from(id)]
    }

    pub(super) fn phase(&self, id: Id) -> ClientPhase {
        self.clients[usize::from(id)].phase
    }
}
