//! Processes: their clocks, and their stops.

use std::collections::BTreeMap;

use super::{EPOCH, MICRO, SECOND, State};

/// What the monotonic clock of a process shows when the history begins.
const ORIGIN: u64 = 3_600 * SECOND;

#[derive(Default)]
pub struct Process {
    /// How many reasons stop it.
    pub stops: u32,
    /// How often it was stopped inside a step.
    pub stops_inside: u64,
    /// It was stopped since it read its clock, inside of a step.
    pub has_old_time: bool,
    /// It was killed: its tasks run no more.
    pub dead: bool,
    /// When that was.
    pub ended: Option<u64>,
    /// How fast its clocks are, in millionths.
    pub ppm: i64,
    /// The runtime of the application.
    pub application: u64,
    /// Tasks that were woken while they could not run.
    pub(super) waiting: Vec<u64>,
    /// How many reasons block each of its runtimes.
    pub(super) blocked: BTreeMap<u64, u32>,
}

impl Process {
    pub(super) fn new(ppm: i64) -> Self {
        Self {
            ppm,
            ..Self::default()
        }
    }

    pub(super) fn runs(&self, runtime: u64) -> bool {
        self.stops == 0 && !self.blocked.contains_key(&runtime)
    }
}

impl State {
    /// The reading of a process's monotonic clock.
    pub(super) fn clock_of(&self, process: usize) -> u64 {
        let ppm = i128::from(self.processes[process].ppm);
        let now = i128::from(self.now);
        ORIGIN + (now + now * ppm / 1_000_000) as u64
    }

    /// True time at which a process's clock shows `reading`, or shortly after it.
    pub(super) fn true_time(&self, process: usize, reading: u64) -> u64 {
        let ppm = i128::from(self.processes[process].ppm);
        let since = i128::from(reading.saturating_sub(ORIGIN));
        let time = since * 1_000_000 / (1_000_000 + ppm);
        let time = u64::try_from(time).unwrap_or(u64::MAX);
        time.saturating_add(if ppm == 0 { 0 } else { 2 })
    }

    pub(super) fn wall_clock(&self, process: usize) -> u64 {
        let since = (self.clock_of(process) - ORIGIN) / MICRO;
        EPOCH as u64 + since
    }

    /// Lets a process run again when one reason to stop it is gone.
    pub(super) fn resume(&mut self, process: usize) {
        let it = &mut self.processes[process];
        it.stops -= 1;
        self.ready.append(&mut it.waiting);
    }

    pub(super) fn block_runtime(&mut self, process: usize, runtime: u64) {
        *self.processes[process].blocked.entry(runtime).or_default() += 1;
    }

    pub(super) fn unblock_runtime(&mut self, process: usize, runtime: u64) {
        let it = &mut self.processes[process];
        if let Some(reasons) = it.blocked.get_mut(&runtime) {
            *reasons -= 1;
            if *reasons == 0 {
                it.blocked.remove(&runtime);
            }
        }
        self.ready.append(&mut it.waiting);
    }
}
