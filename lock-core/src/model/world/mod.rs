//! The world of the model: a server, processes, messages between them, and all possible steps.

mod network;
mod owners;
mod records;
mod steps;
mod take;
mod waiters;

use std::time::Duration;

use super::fault::ModelFault;
use super::message::{AcquireReply, Ask, Name, Push};
use super::process::Process;
use super::server::ModelServer;
use crate::base::clock::Moment;
use crate::lease::LeaseOptions;

/// A tick of the processes' clock. The server's clock moves 1 % more or less.
const TICK: Duration = Duration::from_secs(1);
const START: Moment = Moment(3_600_000_000_000);
const SERVER_START: u64 = 1_000_000_000;
/// The longest trip of a command. After that time its socket gives up.
const LONGEST_TRIP: Duration = Duration::from_secs(5);
/// The time after which the grant of a hand-over has ended.
const GIVEN: Duration = Duration::from_millis(2_001);
/// The time after which an unanswered command is undone a second time.
const LATE_DUPLICATE: Duration = Duration::from_secs(6);

/// The size of the world, and the failures that may happen in it.
#[derive(Clone, Debug)]
pub(in crate::model) struct Limits {
    pub(in crate::model) processes: u8,
    /// The number of ticks that the search covers.
    pub(in crate::model) ticks: u8,
    /// The number of leases that a process begins.
    pub(in crate::model) leases: u8,
    /// The number of requests for one lease.
    pub(in crate::model) rounds: u8,
    /// The number of tasks of a process that wait behind another.
    pub(in crate::model) line: u8,
    /// Whether waiters give up, and whether requests and renewals stay unanswered.
    pub(in crate::model) cancels: bool,
    pub(in crate::model) unanswered: bool,
    /// Whether the world records when a waiter will ask without a push.
    ///
    /// Safety does not depend on that, because a waiter may ask at any time.
    pub(in crate::model) timers: bool,
    /// The number of failures beyond late and lost messages.
    ///
    /// They are kills, repeated messages, foreign owners and lost queues.
    pub(in crate::model) disruptions: u8,
    /// The ttls of a lease and of a nested body.
    pub(in crate::model) ttl_millis: u64,
    pub(in crate::model) longer_millis: Option<u64>,
    /// Whether owners may leave gaps.
    pub(in crate::model) gaps: bool,
    /// The length of a cooldown, if owners may request one.
    pub(in crate::model) cooldown_millis: Option<u64>,
    /// Whether owners leave a record instead of a cooldown, for the same length.
    pub(in crate::model) records: bool,
    /// Milliseconds by which the server's clock may be stepped, once.
    pub(in crate::model) step: Option<i64>,
    /// Microseconds of the server's clock in a tick of the processes'.
    pub(in crate::model) rates: &'static [u64],
    /// The most ticks that a waiter may wait once nothing fails any more.
    pub(in crate::model) longest_wait: u64,
    pub(in crate::model) fault: Option<ModelFault>,
}

impl Limits {
    fn options(&self) -> LeaseOptions {
        LeaseOptions::new(Duration::from_millis(self.ttl_millis), true, None)
    }

    fn longer(&self) -> LeaseOptions {
        let millis = self.longer_millis.unwrap_or(self.ttl_millis);
        LeaseOptions::new(Duration::from_millis(millis), true, None)
    }

    fn has(&self, fault: ModelFault) -> bool {
        self.fault == Some(fault)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::model) enum Message {
    Ask(Ask, Moment, u8),
    AcquireReply(Name, u8, AcquireReply),
    Extend(Name, Moment, u64),
    Extended(Name, Moment, u64, bool),
    Release(Name, Option<u64>),
    /// A release that leaves a gap.
    Vacate(Name, Option<u64>),
    /// A release with a cooldown.
    Cool(Name, Option<u64>),
    /// A release with a record.
    Remember(Name, Option<u64>),
    /// Hands a free key to the next waiter, after an earlier hand-over.
    CheckQueue(u8),
    Push(Push),
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Step {
    /// Time moves one tick, and the server's clock by so many microseconds.
    Tick(u64),
    /// A process requests the lock.
    Begin(u8),
    /// One more task of the process requests the lock.
    Line(u8),
    Deliver(usize),
    /// A request is delivered, and the server refuses to write its ticket.
    Refuse(usize),
    /// A message is delivered, and once more later.
    Double(usize),
    /// Two releases arrive in one batch.
    Batch(usize, usize),
    /// A request, or a renewal, counts as unanswered, and the process asks again.
    AskAgain(u8),
    RenewalUnanswered(u8),
    Cancel(u8),
    /// The owner ends, and passes the lease on or releases it.
    End(u8),
    /// The owner ends, and leaves the key free for a while.
    Vacate(u8),
    /// The owner ends, and its key is to cool down.
    Cool(u8),
    /// The owner ends, and leaves a record.
    Remember(u8),
    /// A nested body with a longer ttl enters the lease.
    Serve(u8),
    /// The keeper does what is due.
    RunKeeper(u8),
    /// The process dies, and the server knows it.
    Kill(u8),
    ForeignOwner,
    QueueLost,
    /// The record is deleted.
    Forget,
    ClockJumps,
}

/// A violation of an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Wrong {
    TwoOwners,
    OwnerWithoutKey,
    FenceNotHigher,
    ForeignKeyTouched,
    Abandoned,
    HandedToDeadProcess,
    PassedOverTheQueue,
    CooldownCut,
    RanAfterRecord,
    RecordCameBack,
    QueuedBehindRecord,
    GapFilled,
    WaitsForever,
}

#[derive(Clone, Debug, Hash)]
pub(in crate::model) struct World {
    pub(in crate::model) ticks: u8,
    pub(in crate::model) server: ModelServer,
    pub(in crate::model) net: Vec<Message>,
    pub(in crate::model) processes: Vec<Process>,
    disruptions: u8,
    stepped: bool,
    /// The highest fencing token with which an owner has started.
    acted_on: u64,
    pub(in crate::model) cooling: Option<Cooling>,
    /// The record that was deleted last.
    forgotten: Option<Name>,
}

/// A cooldown, or a record, that an owner has requested.
///
/// `ends` is set when it has reached the server, in milliseconds of the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::model) struct Cooling {
    pub(in crate::model) name: Name,
    pub(in crate::model) ends: Option<u64>,
}

impl World {
    pub(in crate::model) fn new(limits: &Limits) -> Self {
        Self {
            ticks: 0,
            server: ModelServer::new(SERVER_START),
            net: Vec::new(),
            processes: (0..limits.processes).map(|_| Process::new()).collect(),
            disruptions: 0,
            stepped: false,
            acted_on: 0,
            cooling: None,
            forgotten: None,
        }
    }

    pub(in crate::model) fn now(&self) -> Moment {
        START + TICK * u32::from(self.ticks)
    }

    /// Returns the world after a step, or the violation.
    pub(in crate::model) fn after(&self, step: Step, limits: &Limits) -> Result<World, Wrong> {
        let next = self.next(step, limits)?;
        next.check()?;
        Ok(next)
    }

    /// Returns the world after a step, which is not checked yet.
    fn next(&self, step: Step, limits: &Limits) -> Result<World, Wrong> {
        let mut next = self.clone();
        next.take(step, limits)?;
        next.net.sort_unstable();
        Ok(next)
    }
}
