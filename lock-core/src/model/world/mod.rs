//! The world of the model: a server, processes, what is on its way between them, and every single
//! thing that can happen next.

mod network;
mod owners;
mod steps;
mod take;
mod waiters;

use std::time::Duration;

use super::fault::Fault;
use super::process::{Name, Process};
use super::server::{Answer, Ask, Push, Server};
use crate::base::clock::Moment;
use crate::lease::LeaseOptions;

/// The processes' clock moves by a second at a time; the server's by 1 % more or less.
const TICK: Duration = Duration::from_secs(1);
const START: Moment = Moment(3_600_000_000_000);
const SERVER_START: u64 = 1_000_000_000;
/// A command that has not arrived by then never will: its socket gives up.
const LONGEST_TRIP: Duration = Duration::from_secs(5);
/// The grant of a key that was given away is over by then.
const GIVEN: Duration = Duration::from_millis(2_001);
/// When what a command without an answer may have done is undone once more.
const LATE_DUPLICATE: Duration = Duration::from_secs(6);

/// How large the world is, and what may go wrong in it.
#[derive(Clone, Debug)]
pub(in crate::model) struct Limits {
    pub(in crate::model) processes: u8,
    /// The time that is looked at.
    pub(in crate::model) ticks: u8,
    /// Leases that a process begins.
    pub(in crate::model) leases: u8,
    /// Questions for one lease.
    pub(in crate::model) rounds: u8,
    /// Tasks of a process that come to stand in line behind another.
    pub(in crate::model) line: u8,
    /// Whether waiters give up, and whether questions and renewals go unanswered.
    pub(in crate::model) cancels: bool,
    pub(in crate::model) unanswered: bool,
    /// Whether it is kept when a waiter will ask by itself. What is safe does not depend on it: a
    /// waiter may ask at any time.
    pub(in crate::model) timers: bool,
    /// What goes wrong beyond late and lost messages: kills, doubled messages, strangers, lost queues.
    pub(in crate::model) mischief: u8,
    /// The ttl of a lease, and of a body nested in it, if there are such.
    pub(in crate::model) ttl_millis: u64,
    pub(in crate::model) longer_millis: Option<u64>,
    /// Whether owners may leave gaps.
    pub(in crate::model) gaps: bool,
    /// For how long a key cools down, if owners may ask for that.
    pub(in crate::model) cooldown_millis: Option<u64>,
    /// Milliseconds by which the server's clock may be stepped, once.
    pub(in crate::model) step: Option<i64>,
    /// Microseconds of the server's clock in a tick of the processes'.
    pub(in crate::model) rates: &'static [u64],
    /// For how many ticks anybody may still have to wait once nothing goes wrong any more.
    pub(in crate::model) longest_wait: u64,
    pub(in crate::model) fault: Option<Fault>,
}

impl Limits {
    fn terms(&self) -> LeaseOptions {
        LeaseOptions::new(Duration::from_millis(self.ttl_millis), true, None)
    }

    fn longer(&self) -> LeaseOptions {
        let millis = self.longer_millis.unwrap_or(self.ttl_millis);
        LeaseOptions::new(Duration::from_millis(millis), true, None)
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::model) enum Message {
    Ask(Ask<Name>, Moment, u8),
    Answer(Name, u8, Answer<Name>),
    Extend(Name, Moment, u64),
    Extended(Name, Moment, u64, bool),
    Release(Name, Option<u64>),
    /// A release that leaves a gap.
    Vacate(Name, Option<u64>),
    /// A release with a cooldown.
    Cool(Name, Option<u64>),
    /// A key that was given away goes to the next, if it is free.
    LookAfter(u8),
    Push(Push<Name>),
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Step {
    /// Time goes on, with the server's clock at so many microseconds.
    Tick(u64),
    /// Somebody wants the lock.
    Begin(u8),
    /// One more task of the process wants it.
    Line(u8),
    Deliver(usize),
    /// A question is delivered, and the server refuses its place in the queue.
    Refuse(usize),
    /// Delivered, and once more later.
    Double(usize),
    /// Two releases arrive in one batch.
    Batch(usize, usize),
    /// A question, or a renewal, is taken for unanswered, and asked again.
    AskAgain(u8),
    RenewalUnanswered(u8),
    Cancel(u8),
    /// The tenure ends: passed on, or given back.
    End(u8),
    /// It ends, and its key is to be left free for a while.
    Vacate(u8),
    /// It ends, and its key is to cool down.
    Cool(u8),
    /// A nested body with a longer ttl goes under the lease.
    Serve(u8),
    /// The keeper looks.
    Look(u8),
    /// The process is gone, and the server knows.
    Kill(u8),
    Stranger,
    QueueLost,
    ClockJumps,
}

/// What must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Wrong {
    TwoWindows,
    WindowWithoutTheKey,
    FenceNotHigher,
    AnothersKeyTouched,
    NobodyLooksAfterIt,
    GivenToWhoHasGone,
    PassedOverTheQueue,
    CooldownCut,
    GapFilled,
    WaitsForEver,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::model) struct World {
    pub(in crate::model) ticks: u8,
    pub(in crate::model) server: Server<Name>,
    pub(in crate::model) net: Vec<Message>,
    pub(in crate::model) processes: Vec<Process>,
    mischief: u8,
    stepped: bool,
    /// The highest fencing token that anybody has acted on.
    acted_on: u64,
    pub(in crate::model) cooling: Option<Cooling>,
}

/// A cooldown that an owner has asked for: on its way to the server, or there until then, by the
/// server's clock in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::model) struct Cooling {
    pub(in crate::model) name: Name,
    pub(in crate::model) ends: Option<u64>,
}

impl World {
    pub(in crate::model) fn new(limits: &Limits) -> Self {
        Self {
            ticks: 0,
            server: Server::new(SERVER_START, 1),
            net: Vec::new(),
            processes: (0..limits.processes).map(|_| Process::new()).collect(),
            mischief: 0,
            stepped: false,
            acted_on: 0,
            cooling: None,
        }
    }

    pub(in crate::model) fn now(&self) -> Moment {
        START + TICK * u32::from(self.ticks)
    }

    /// The world after a step, or what is wrong with it.
    pub(in crate::model) fn after(&self, step: Step, limits: &Limits) -> Result<World, Wrong> {
        let mut next = self.clone();
        next.take(step, limits)?;
        next.net.sort_unstable();
        next.check()?;
        Ok(next)
    }
}
