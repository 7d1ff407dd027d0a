//! The bounds of a world, its faults, its messages, and the state of a process.

/// How many tokens a lease may use beside its own: `passes` of `common.lua`.
pub(super) const PASSES: u8 = 2;
/// A lease outlasts the microseconds in which it passes on.
pub(super) const TTL: u8 = 6;
pub(super) const GRACE: u8 = 3;
/// The first reading of the server's clock.
pub(super) const START: u8 = 10;

/// A lease: its process, and which of its leases it is.
pub(super) type Token = (usize, u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForceFault {
    /// An order names the key only.
    ByKey,
    MarkNotRaised,
    /// The mark is not raised above the tokens of later passes.
    MarkWithoutPasses,
    /// The mark is raised, but not above the clock.
    MarkWithoutClock,
    /// The mark is raised above the clock, but not above its own value.
    MarkWithoutMark,
    /// The mark is not raised above the token that the holder has named.
    MarkWithoutHolder,
    /// The key is given on at once.
    NoGrace,
    HolderNotTold,
    /// A process that hears of the order before it hears of the grant takes the grant.
    ToldBeforeGrant,
    /// The value of the closed key is the token of its holder.
    OwnTokenStays,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForceWrong {
    /// An order frees a holder that was not seen.
    UnseenHolder,
    /// A grant has a token that an earlier holder has used, or may use.
    TokenTooLow,
    /// Two running processes believe that they own the key.
    TwoOwners,
    /// An owner that was not freed does not have the key.
    OwnerWithoutKey,
    /// A command of a freed holder changes the key.
    LateCommand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Of(Token),
    /// The value of a cooldown.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Message {
    Acquire { token: Token },
    Granted { token: Token, fence: u8 },
    Renew { token: Token },
    Renewed { token: Token, yes: bool },
    Release { token: Token, used: u8 },
    Order { token: Token, fence: u8 },
    Told { token: Token },
}

impl Message {
    pub(super) fn grants(&self, to: Token) -> bool {
        matches!(self, Message::Granted { token, .. } if *token == to)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    /// `freed`: the process has heard that the grant on its way counts for nothing.
    Waits {
        freed: bool,
    },
    /// The lease uses this token, and may pass on so often.
    Holds {
        uses: u8,
        passes: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Condition {
    Runs,
    /// It does nothing, and its connection stands.
    Stands,
    /// It runs, and neither sends nor hears anything.
    IsCutOff,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) phase: Phase,
    pub(super) condition: Condition,
    /// The number of leases that have ended.
    pub(super) lease: u8,
}

impl Process {
    /// Returns whether a message to the process has a receiver.
    pub(super) fn listens(&self) -> bool {
        self.condition != Condition::IsCutOff
    }

    pub(super) fn holds(&self) -> bool {
        matches!(self.phase, Phase::Holds { .. })
    }

    pub(super) fn ends(&mut self) {
        self.phase = Phase::Idle;
        self.lease += 1;
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ForceBounds {
    pub(super) processes: usize,
    /// How many leases each process wants.
    pub(super) leases: u8,
    pub(super) orders: u8,
    pub(super) order_copies: u8,
    /// How often a process stops or is cut off.
    pub(super) failures: u8,
    pub(super) expiries: u8,
    pub(super) renewals: u8,
    /// How often the clock moves without the end of a key.
    pub(super) ticks: u8,
    /// How often the clock is set back while an order is on its way.
    pub(super) steps_back: u8,
    /// The mark at the start.
    pub(super) mark: u8,
    pub(super) fault: Option<ForceFault>,
}
