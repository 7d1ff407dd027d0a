//! The state of a world, and its checks.

use std::collections::HashMap;

/// A key, by its place in the order.
pub(super) type Key = usize;

/// One lease: its process, and which of its leases it is.
pub(super) type Token = (usize, u8);

/// A fault of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupFault {
    /// Keys are taken in the order in which the caller names them, one by one.
    GivenOrder,
    /// A waiter stands in the queues of all keys at once, and keeps each key that it is given.
    QueuedInAll,
    /// A waiter that is refused with the one key in hand keeps it, and takes the others in order.
    KeepsTheOne,
    /// All attempts of a caller have one token.
    OneToken,
}

/// The limits of a world.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// The keys that each process wants, as it names them.
    pub(super) wants: &'static [&'static [Key]],
    /// How many processes die.
    pub(super) crashes: u8,
    /// How often a queue forgets a waiter.
    pub(super) forgotten: u8,
    /// Whether a waiter may give up.
    pub(super) gives_up: bool,
    pub(super) fault: Option<GroupFault>,
}

impl Limits {
    pub(super) fn keys(&self) -> usize {
        let keys = self.wants.iter().flat_map(|keys| keys.iter());
        keys.max().map_or(0, |last| last + 1)
    }

    /// The keys of a process in the order in which it takes them.
    pub(super) fn order(&self, process: usize) -> Vec<Key> {
        let mut keys = self.wants[process].to_vec();
        if self.fault != Some(GroupFault::GivenOrder) {
            keys.sort_unstable();
            keys.dedup();
        }
        keys
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Message {
    /// `all.lua`
    All(usize, Vec<(Key, Token)>),
    AllGranted(usize, Vec<(Key, Token)>),
    AllRefused(usize, Key),
    /// An acquire that queues.
    Ask(usize, Key, Token),
    /// A release of the key, or of the place in its queue.
    Release(Key, Token),
    Given(Key, Token),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    AsksForAll,
    /// Waits for the one key that was refused, and holds none.
    WaitsForOne(Key, Token),
    /// Holds that key and asks for the others.
    AsksForTheRest,
    /// Takes the keys in order, and waits for this one.
    InOrder(Key, Token),
    /// Stands in all queues: a fault.
    InAllQueues,
    Holds,
    Done,
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) phase: Phase,
    /// Sorted by key.
    pub(super) held: Vec<(Key, Token)>,
    pub(super) leases: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) owners: Vec<Option<Token>>,
    pub(super) queues: Vec<Vec<Token>>,
    pub(super) processes: Vec<Process>,
    /// Sorted, because they arrive in any order.
    pub(super) messages: Vec<Message>,
    pub(super) crashes: u8,
    pub(super) forgotten: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A process holds a lock without having all its keys in the store.
    HoldsWithoutKey,
    /// A process waits for ever.
    Deadlock,
    /// A key stays taken whose process has ended.
    LeftBehind,
}

/// A step of the world, by its kind. Calm worlds take the first kind that is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Arrives,
    Ends,
    RunsOut,
    Timer,
    Begins,
    Fails,
}

impl World {
    pub(super) fn new(limits: &Limits) -> Self {
        let process = Process {
            phase: Phase::Idle,
            held: Vec::new(),
            leases: 0,
        };
        Self {
            owners: vec![None; limits.keys()],
            queues: vec![Vec::new(); limits.keys()],
            processes: vec![process; limits.wants.len()],
            messages: Vec::new(),
            crashes: limits.crashes,
            forgotten: limits.forgotten,
        }
    }

    pub(super) fn check(&self, limits: &Limits) -> Result<(), Wrong> {
        for (number, process) in self.processes.iter().enumerate() {
            if process.phase != Phase::Holds {
                continue;
            }
            let held: HashMap<Key, Token> = process.held.iter().copied().collect();
            let owns = |key: &Key| {
                held.get(key)
                    .is_some_and(|token| self.owners[*key] == Some(*token))
            };
            if !limits.order(number).iter().all(owns) {
                return Err(Wrong::HoldsWithoutKey);
            }
        }
        Ok(())
    }

    /// Lets everything that has begun come to its end, without further faults.
    pub(super) fn comes_to_rest(&self, limits: &Limits) -> Result<(), Wrong> {
        let limits = Limits {
            gives_up: false,
            ..limits.clone()
        };
        let mut world = Self {
            crashes: 0,
            forgotten: 0,
            ..self.clone()
        };
        for _ in 0..600 {
            let next = world.steps(&limits);
            let next = next.into_iter().filter(|(step, _)| *step < Step::Begins);
            let Some((_, after)) = next.min_by_key(|(step, _)| *step) else {
                break;
            };
            world = after;
        }
        let ended =
            |process: &Process| matches!(process.phase, Phase::Idle | Phase::Done | Phase::Dead);
        if !world.processes.iter().all(ended) {
            return Err(Wrong::Deadlock);
        }
        let is_dead = |token: Token| world.processes[token.0].phase == Phase::Dead;
        let mut owners = world.owners.iter().flatten();
        match owners.all(|token| is_dead(*token)) {
            true => Ok(()),
            false => Err(Wrong::LeftBehind),
        }
    }
}
