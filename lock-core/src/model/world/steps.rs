//! All that can happen next.

use super::{Limits, Message, Step, World};
use crate::model::process::Process;
use crate::model::server::Value;

impl World {
    pub(in crate::model) fn steps(&self, limits: &Limits) -> Vec<Step> {
        let mut steps = Vec::with_capacity(16);
        let mischief = self.mischief < limits.mischief;
        if self.ticks < limits.ticks {
            steps.extend(limits.rates.iter().map(|rate| Step::Tick(*rate)));
        }
        for (index, message) in self.net.iter().enumerate() {
            // Twice the same is once the same, and the other later.
            if index > 0 && self.net[index - 1] == *message {
                continue;
            }
            steps.push(Step::Deliver(index));
            let doubles = matches!(
                message,
                Message::Push(_) | Message::Release(..) | Message::Vacate(..) | Message::Cool(..)
            );
            if mischief && doubles {
                steps.push(Step::Double(index));
            }
            if mischief && self.writes_its_place_alone(message) {
                steps.push(Step::Refuse(index));
            }
            if let Message::Release(name, _) = message {
                steps.extend((index + 1..self.net.len()).filter_map(|other| {
                    let together = matches!(&self.net[other], Message::Release(second, _)
                        if second.process == name.process);
                    together.then_some(Step::Batch(index, other))
                }));
            }
        }
        for (index, process) in (0..).zip(&self.processes) {
            if process.alive {
                self.steps_of(index, process, limits, &mut steps);
                if mischief {
                    steps.push(Step::Kill(index));
                }
            }
        }
        if mischief && self.server.look(0).is_none() {
            steps.push(Step::Stranger);
        }
        if mischief && !self.server.keys[0].queue.is_empty() {
            steps.push(Step::QueueLost);
        }
        if self.clock_may_be_stepped(limits) {
            steps.push(Step::ClockJumps);
        }
        steps
    }

    /// Whether a question is answered without a write, but for the place in the queue.
    fn writes_its_place_alone(&self, message: &Message) -> bool {
        let Message::Ask(ask, ..) = message else {
            return false;
        };
        let found = self.server.look(0);
        let taken = found.is_some_and(|(value, _)| value != Value::Held(ask.token));
        taken && ask.queue && ask.replaces.is_none()
    }

    /// Forwards: not while somebody has the key, or is being given it. Backwards: before any lease, or
    /// grant, can have run out.
    fn clock_may_be_stepped(&self, limits: &Limits) -> bool {
        let Some(step) = limits.step.filter(|_| !self.stepped) else {
            return false;
        };
        if step < 0 {
            return self.ticks <= 1;
        }
        let Some((Value::Held(owner), _)) = self.server.look(0) else {
            return true;
        };
        let process = &self.processes[usize::from(owner.process)];
        let waits = process.waiter.as_ref().is_some_and(|one| one.name == owner);
        let holds = process.tenure.as_ref().is_some_and(|one| one.name == owner);
        !waits && !holds
    }

    fn steps_of(&self, index: u8, process: &Process, limits: &Limits, steps: &mut Vec<Step>) {
        let begins = process.begun < limits.leases;
        match &process.waiter {
            Some(waiter) => {
                if limits.unanswered && waiter.rounds < limits.rounds {
                    steps.push(Step::AskAgain(index));
                }
                if limits.cancels {
                    steps.push(Step::Cancel(index));
                }
            }
            // Processes are alike: they come in the order of their numbers.
            None if process.tenure.is_none() && begins && self.is_next(index) => {
                steps.push(Step::Begin(index));
            }
            None => {}
        }
        if process.joined < limits.line && (process.waiter.is_some() || process.tenure.is_some()) {
            steps.push(Step::Line(index));
        }
        if let Some(tenure) = &process.tenure {
            steps.push(Step::End(index));
            if limits.gaps {
                steps.push(Step::Vacate(index));
            }
            if limits.cooldown_millis.is_some() {
                steps.push(Step::Cool(index));
            }
            if limits.unanswered && tenure.extending.is_some() {
                steps.push(Step::RenewalUnanswered(index));
            }
            if limits.longer_millis.is_some() && !tenure.served {
                steps.push(Step::Serve(index));
            }
        }
        if self.is_due(process) {
            steps.push(Step::Look(index));
        }
    }

    fn is_next(&self, index: u8) -> bool {
        index == 0 || self.processes[usize::from(index) - 1].begun > 0
    }

    fn is_due(&self, process: &Process) -> bool {
        let now = self.now();
        let tenure = process.tenure.as_ref();
        let twin = process.twins.first();
        let gave = process.gave;
        tenure.is_some_and(|one| one.lease.due().is_some_and(|due| due <= now))
            || twin.is_some_and(|twin| twin.at <= now)
            || gave.is_some_and(|at| at <= now)
    }
}
