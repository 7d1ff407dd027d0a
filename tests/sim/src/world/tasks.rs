//! The executor: one step polls one ready task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use lock_core::machine::Task;

use super::{MICRO, Order, Sim, State};

/// The longest time that a step takes.
const STEP: u64 = 20 * MICRO;

pub(super) struct Slot {
    process: usize,
    runtime: u64,
    /// Its end ends the runtime.
    is_main: bool,
    /// Absent while it is polled.
    task: Option<Task>,
    is_aborted: bool,
    waker: Waker,
    wake: Arc<TaskWake>,
}

/// The tasks that were woken since the last step.
pub(super) type WakeList = Mutex<Vec<u64>>;

struct TaskWake {
    task: u64,
    is_woken: AtomicBool,
    woken: Arc<WakeList>,
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::Relaxed) {
            self.woken.lock().expect("one thread").push(self.task);
        }
    }
}

/// A task that is polled now.
struct Polled {
    number: u64,
    process: usize,
    runtime: u64,
    waker: Waker,
    task: Task,
}

/// What the executor does next.
enum Next {
    Wake(Vec<Waker>),
    Drop(Slot),
    Poll(Polled),
    /// Nothing is ready before the time of the next event.
    Advance,
    Done,
}

impl Sim {
    pub(super) fn spawn_main(&self, process: usize, runtime: u64, task: Task) -> u64 {
        self.spawn_in(process, runtime, task, true)
    }

    pub(super) fn spawn_task(&self, process: usize, runtime: u64, task: Task) -> u64 {
        self.spawn_in(process, runtime, task, false)
    }

    fn spawn_in(&self, process: usize, runtime: u64, task: Task, is_main: bool) -> u64 {
        let mut state = self.state.borrow_mut();
        let number = state.number();
        if state.processes[process].dead || state.ended_runtimes.contains(&runtime) {
            drop(state);
            drop(task);
            return number;
        }
        let wake = Arc::new(TaskWake {
            task: number,
            is_woken: AtomicBool::new(true),
            woken: Arc::clone(&self.woken),
        });
        let slot = Slot {
            process,
            runtime,
            is_main,
            task: Some(task),
            is_aborted: false,
            waker: Waker::from(Arc::clone(&wake)),
            wake,
        };
        state.tasks.insert(number, slot);
        state.ready.push(number);
        number
    }

    pub(super) fn abort_task(&self, task: u64) {
        let slot = {
            let mut state = self.state.borrow_mut();
            match state.tasks.get_mut(&task) {
                // It aborts itself, or is in the middle of a step.
                Some(slot) if slot.task.is_none() => {
                    slot.is_aborted = true;
                    None
                }
                _ => state.tasks.remove(&task),
            }
        };
        drop(slot);
    }

    /// Ends a runtime: drops its tasks.
    pub(super) fn end_runtime(&self, runtime: u64) {
        let tasks: Vec<u64> = {
            let mut state = self.state.borrow_mut();
            state.ended_runtimes.insert(runtime);
            let of_it = state.tasks.iter().filter(|it| it.1.runtime == runtime);
            of_it.map(|it| *it.0).collect()
        };
        tasks.into_iter().for_each(|task| self.abort_task(task));
    }

    /// How many tasks a process has.
    pub fn tasks_of(&self, process: usize) -> usize {
        let state = self.state.borrow();
        let tasks = state.tasks.values();
        tasks.filter(|it| it.process == process).count()
    }

    /// Runs all processes until the time `end`.
    pub fn run_until(&self, end: u64) {
        loop {
            // Its own variable, so that the state is free again.
            let next = self.next(end);
            match next {
                Next::Wake(wakers) => wakers.into_iter().for_each(Waker::wake),
                Next::Drop(slot) => self.drop_aborted(slot),
                Next::Poll(polled) => self.poll(polled),
                Next::Advance => {}
                Next::Done => return,
            }
        }
    }

    fn next(&self, end: u64) -> Next {
        let mut woken = std::mem::take(&mut *self.woken.lock().expect("one thread"));
        // tokio's `watch` wakes its receivers in an order of its own.
        woken.sort_unstable();
        let mut state = self.state.borrow_mut();
        state.ready.extend(woken);
        let wakers = state.fire_due();
        if !wakers.is_empty() {
            return Next::Wake(wakers);
        }
        if state.now >= end {
            return Next::Done;
        }
        while !state.ready.is_empty() {
            if let Some(next) = state.take_ready() {
                return next;
            }
        }
        match state.next_event() {
            Some(time) if time <= end => {
                state.now = state.now.max(time);
                Next::Advance
            }
            _ => {
                state.now = end;
                Next::Done
            }
        }
    }

    /// Drops a task in its runtime, where the values in it may spawn others.
    fn drop_aborted(&self, slot: Slot) {
        let here = (slot.process, slot.runtime);
        let before = self.state.borrow_mut().current.replace(here);
        drop(slot);
        self.state.borrow_mut().current = before;
    }

    fn poll(&self, polled: Polled) {
        let Polled {
            number,
            process,
            runtime,
            waker,
            mut task,
        } = polled;
        let (before, polled) = {
            let mut state = self.state.borrow_mut();
            state.steps += 1;
            state.thawed = false;
            state.note(&[5, number], || format!("p{process} r{runtime} t{number}"));
            let polled = state.polled.replace(number);
            (state.current.replace((process, runtime)), polled)
        };
        let is_ready = task
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready();
        let mut state = self.state.borrow_mut();
        let cost = 1 + state.rng.below(STEP);
        state.now += cost;
        let is_over = is_ready || state.tasks.get(&number).is_none_or(|it| it.is_aborted);
        if !is_over {
            state.tasks.get_mut(&number).expect("a slot").task = Some(task);
            (state.current, state.polled) = (before, polled);
            return;
        }
        let slot = state.tasks.remove(&number);
        drop(state);
        drop(task);
        if slot.is_some_and(|slot| slot.is_main) {
            self.end_runtime(runtime);
        }
        let mut state = self.state.borrow_mut();
        (state.current, state.polled) = (before, polled);
    }
}

impl State {
    /// Takes a ready task out; `None`: it cannot run.
    fn take_ready(&mut self) -> Option<Next> {
        let at = match self.settings.order {
            Order::Seeded => self.rng.index(self.ready.len()),
            Order::Fifo => 0,
        };
        let number = match self.settings.order {
            Order::Seeded => self.ready.swap_remove(at),
            Order::Fifo => self.ready.remove(at),
        };
        let slot = self.tasks.get_mut(&number)?;
        let process = &mut self.processes[slot.process];
        if process.dead {
            return None;
        }
        if slot.is_aborted {
            return self.tasks.remove(&number).map(Next::Drop);
        }
        if !process.runs(slot.runtime) {
            process.waiting.push(number);
            return None;
        }
        slot.wake.is_woken.store(false, Ordering::Relaxed);
        let task = slot.task.take()?;
        Some(Next::Poll(Polled {
            number,
            process: slot.process,
            runtime: slot.runtime,
            waker: slot.waker.clone(),
            task,
        }))
    }
}
