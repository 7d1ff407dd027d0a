//! The machine of lock-core: the world answers for the process that runs.

use std::io;
use std::rc::Rc;
use std::task::Waker;

use lock_core::machine::{Connecting, Task, World};

use super::stream::{Dial, Socket};
use super::{MILLI, SECOND, Sim};

/// One in so many readings of the clock, draws and writes stops its process.
const STOPS: u64 = 400;
/// The longest stop inside a step.
pub const LONGEST_STOP: u64 = 3 * SECOND;
/// A process that is stopped inside a step may not stop another one for ever.
const DEEPEST: u32 = 2;

pub(super) struct Ambient(pub(super) Rc<Sim>);

impl Ambient {
    fn process(&self) -> usize {
        self.0.look(|state| state.current_process())
    }
}

impl World for Ambient {
    fn now(&self) -> u64 {
        let process = self.process();
        let before = self.0.look(|state| state.clock_of(process));
        self.0.may_stop_here();
        self.0.change(|state| {
            let after = state.clock_of(process);
            // It was stopped before the reading, or behind it.
            let is_old = before != after && state.rng.percent(50);
            state.processes[process].has_old_time = is_old;
            if is_old { before } else { after }
        })
    }

    fn unix_micros(&self) -> u64 {
        let process = self.process();
        self.0.look(|state| state.wall_clock(process))
    }

    fn fill(&self, bytes: &mut [u8]) {
        self.0.may_stop_here();
        self.0.change(|state| {
            for chunk in bytes.chunks_mut(8) {
                let word = state.rng.next().to_be_bytes();
                chunk.copy_from_slice(&word[..chunk.len()]);
            }
        });
    }

    fn host(&self) -> String {
        format!("host-{}", self.process())
    }

    fn process_id(&self) -> u32 {
        self.process() as u32 + 100
    }

    fn thread(&self, _: &str, main: Task) -> io::Result<()> {
        let (process, runtime) = self
            .0
            .change(|state| (state.current_process(), state.number()));
        self.0.spawn_main(process, runtime, main);
        Ok(())
    }

    fn runtime(&self) -> Option<u64> {
        self.0.look(|state| state.current.map(|current| current.1))
    }

    fn task(&self) -> Option<u64> {
        self.0.look(|state| state.polled)
    }

    fn spawn(&self, runtime: u64, task: Task) -> u64 {
        self.0.spawn_task(self.process(), runtime, task)
    }

    fn abort(&self, task: u64) {
        self.0.abort_task(task);
    }

    fn set_timer(&self, at: u64, waker: &Waker) -> u64 {
        let process = self.process();
        self.0.change(|state| {
            let time = state.true_time(process, at);
            state.set_timer(time, waker.clone())
        })
    }

    fn clear_timer(&self, timer: u64) {
        let timer = self.0.change(|state| state.clear_timer(timer));
        drop(timer);
    }

    fn connect(&self, address: &str) -> Connecting {
        let process = self.process();
        let connection = self.0.change(|state| {
            let server = state.host_at(address);
            let server = server.unwrap_or_else(|| panic!("{address} is no server of the history"));
            state.dial(process, server)
        });
        Box::pin(Dial(Some(Socket(connection))))
    }

    fn note(&self, step: &dyn Fn() -> String) {
        let process = self.process();
        self.0
            .change(|state| state.log(|| format!("p{process} {}", step())));
    }
}

impl Sim {
    /// Here the process may be stopped between two instructions. All others run meanwhile.
    pub(super) fn may_stop_here(&self) {
        let stopped = self.change(|state| {
            let may = state.settings.stops_inside
                && state.depth < DEEPEST
                && state.current.is_some()
                && state.now < super::faults::LAST;
            if !may || !state.rng.one_in(STOPS) {
                return None;
            }
            let longest = state
                .rng
                .pick(&[2 * MILLI, 50 * MILLI, SECOND, LONGEST_STOP]);
            let until = state.now + state.rng.below(longest);
            let process = state.current_process();
            state.note(&[7, process as u64], || {
                format!(
                    "p{process} stops inside a step until {:.6}",
                    until as f64 / 1e9
                )
            });
            state.depth += 1;
            let it = &mut state.processes[process];
            it.stops += 1;
            it.stops_inside += 1;
            it.has_old_time = true;
            Some((process, until, state.current.take()))
        });
        let Some((process, until, current)) = stopped else {
            return;
        };
        self.run_until(until);
        self.change(|state| {
            state.depth -= 1;
            state.thawed = true;
            state.current = current;
            state.resume(process);
            state.note(&[8, process as u64], || format!("p{process} goes on"));
        });
    }
}
