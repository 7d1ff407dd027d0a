//! One thread, one virtual clock: processes with their runtimes and tasks, the network, and the servers.
//!
//! True time is in nanoseconds since the history began. Each step polls one ready task and takes some time, so that every
//! reading of a clock is different.

mod cluster;
mod cluster_failover;
mod events;
mod failover;
mod fault_effects;
mod fault_facts;
mod faults;
mod link;
mod machine;
mod network;
mod postgres;
mod process;
mod repeats;
mod replication;
mod resharding;
mod servers;
mod strangers;
mod stream;
mod tasks;
#[cfg(test)]
mod tests;
mod writes;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use lock_core::machine as kit;

use self::cluster::Bus;
pub use self::cluster::REPLACED;
use self::events::Event;
pub use self::failover::{SERVICE, Service, Switch};
pub use self::faults::{Fault, LAST, Planned};
use self::link::Link;
pub use self::link::{Late, TO_CONNECT, slowest_segment};
use self::machine::Ambient;
pub use self::machine::LONGEST_STOP;
use self::network::Connection;
pub use self::network::{RETRANSMISSION, Ways};
pub use self::process::Process;
pub use self::servers::{Host, Lives};
use self::tasks::{Slot, WakeList};
pub use self::writes::{Kind, Write};
use crate::rng::Rng;
use crate::server::Bytes;

pub const MICRO: u64 = 1_000;
pub const MILLI: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// Unix time at the beginning of a history, in microseconds.
pub const EPOCH: i64 = 1_700_000_000_000_000;

/// In which order ready tasks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As the seed has it, like the threads of a runtime.
    #[default]
    Seeded,
    /// As they were woken, like a runtime of one thread.
    Fifo,
}

#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub seed: u64,
    pub order: Order,
    /// Whether a process may be stopped between two instructions.
    pub stops_inside: bool,
    /// The usual time of a segment in one direction.
    pub latency: u64,
    pub logs: bool,
}

/// The state of a history.
#[derive(Default)]
pub struct State {
    pub now: u64,
    pub rng: Rng,
    pub processes: Vec<Process>,
    pub hosts: Vec<Host>,
    pub service: Service,
    pub steps: u64,
    /// A process was stopped inside the step that runs.
    pub thawed: bool,
    settings: Settings,
    tasks: BTreeMap<u64, Slot>,
    ready: Vec<u64>,
    events: BTreeMap<(u64, u64), Event>,
    timers: BTreeMap<u64, u64>,
    current: Option<(usize, u64)>,
    /// The task that is polled.
    polled: Option<u64>,
    connections: Vec<Connection>,
    links: BTreeMap<(usize, usize), Link>,
    /// The segments that took longer than usual, though no fault delays them.
    pub late: Vec<Late>,
    bus: Bus,
    faults: Vec<Planned>,
    /// The commands that a proxy will send again, of a process to a server.
    recorded: BTreeMap<(usize, usize), Vec<Vec<Bytes>>>,
    /// Whether a stop waits for a release that has deleted a set of shares in a slot that moves.
    pub stops_amid_a_release: bool,
    /// The faults that wait to stop a process, by the process.
    stops_to_come: BTreeMap<usize, usize>,
    /// The faults in which a stranger has taken a key.
    strangers: BTreeSet<usize>,
    /// The kit has deleted or replaced a stranger's value.
    pub robbed: bool,
    ended_runtimes: BTreeSet<u64>,
    /// A stranger's value was overwritten or deleted.
    pub overwritten: bool,
    last_number: u64,
    trace: u64,
    log: Vec<String>,
    /// How many steps are interrupted by others.
    depth: u32,
}

/// A history that runs.
pub struct Sim {
    state: RefCell<State>,
    woken: Arc<WakeList>,
}

thread_local! {
    static SIM: RefCell<Option<Rc<Sim>>> = const { RefCell::new(None) };
}

/// Returns the history that runs in this thread.
pub fn sim() -> Rc<Sim> {
    SIM.with_borrow(Clone::clone).expect("a history runs")
}

impl Sim {
    pub fn start(settings: Settings) -> Rc<Self> {
        let sim = Rc::new(Self {
            state: RefCell::new(State::new(settings)),
            woken: Arc::new(Mutex::default()),
        });
        SIM.set(Some(Rc::clone(&sim)));
        kit::set_world(Some(Rc::new(Ambient(Rc::clone(&sim)))));
        sim
    }

    /// Ends the history: drops all tasks, without an effect on the servers.
    pub fn end(&self) {
        for process in &mut self.state.borrow_mut().processes {
            process.dead = true;
        }
        loop {
            let first = self.state.borrow_mut().tasks.pop_first();
            if first.is_none() {
                break;
            }
        }
        let events = std::mem::take(&mut self.state.borrow_mut().events);
        drop(events);
        kit::set_world(None);
        drop(SIM.take());
    }

    /// Adds a process, whose clock is fast by `ppm` millionths.
    pub fn add_process(&self, ppm: i64) -> usize {
        let mut state = self.state.borrow_mut();
        state.processes.push(Process::new(ppm));
        state.processes.len() - 1
    }

    /// Starts the runtime of the application in a process. It ends with `main`.
    pub fn start_runtime(
        &self,
        process: usize,
        main: impl Future<Output = ()> + Send + 'static,
    ) -> u64 {
        let runtime = self.state.borrow_mut().number();
        self.state.borrow_mut().processes[process].application = runtime;
        self.spawn_main(process, runtime, Box::pin(main));
        runtime
    }

    /// Reads the state.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.borrow())
    }

    /// Changes the state.
    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.borrow_mut())
    }

    pub fn now(&self) -> u64 {
        self.state.borrow().now
    }
}

impl State {
    fn new(settings: Settings) -> Self {
        Self {
            rng: Rng::of(settings.seed),
            settings,
            ..Self::default()
        }
    }

    /// A number for a task, a runtime, a timer or an event; later ones are higher.
    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The process whose task runs.
    pub fn current_process(&self) -> usize {
        self.current.map_or(0, |current| current.0)
    }

    /// Notes something in the trace, of which two runs of a seed have the same value, and in the log.
    pub fn note(&mut self, words: &[u64], text: impl FnOnce() -> String) {
        for word in words.iter().chain([&self.now]) {
            self.trace = (self.trace.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        self.log(text);
    }

    /// Notes something in the log alone.
    fn log(&mut self, text: impl FnOnce() -> String) {
        if self.settings.logs {
            let line = format!("{:>12.6} {}", self.now as f64 / 1e9, text());
            self.log.push(line);
        }
    }

    pub fn trace(&self) -> u64 {
        self.trace
    }

    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// The last planned fault is over at this time.
    pub fn last_fault_ends(&self) -> u64 {
        let in_cluster = self.hosts.iter().any(|host| host.server.cluster.is_some());
        let ends = self.faults.iter().map(|planned| planned.over(in_cluster));
        ends.max().unwrap_or(0)
    }
}

/// A hash of bytes, eight at a time, because scripts are long.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mix = |hash: u64, word: u64| {
        let mixed = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        mixed ^ (mixed >> 29)
    };
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| u64::from(*byte));
    words.chain(rest).fold(bytes.len() as u64, mix)
}
