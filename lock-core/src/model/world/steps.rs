//! All steps that are possible next.

use super::{Limits, Message, Step, World, Wrong};
use crate::model::explore::Explored;
use crate::model::process::Process;
use crate::model::server::Value;

impl Explored for World {
    type Limits = Limits;
    type Step = Step;
    type Wrong = Wrong;

    fn start(limits: &Limits) -> Self {
        Self::new(limits)
    }

    fn steps(&self, limits: &Limits) -> Vec<Step> {
        self.steps(limits)
    }

    fn after(&self, step: Step, limits: &Limits) -> Result<Self, Wrong> {
        self.next(step, limits)
    }

    fn check(&self, _: &Limits) -> Result<(), Wrong> {
        self.check()
    }

    fn longest_wait(&self, limits: &Limits) -> Result<u64, Wrong> {
        self.longest_wait(limits)
    }
}

impl World {
    pub(in crate::model) fn steps(&self, limits: &Limits) -> Vec<Step> {
        let mut steps = Vec::with_capacity(16);
        let disruptions = self.disruptions < limits.disruptions;
        if self.ticks < limits.ticks {
            steps.extend(limits.rates.iter().map(|rate| Step::Tick(*rate)));
        }
        for (index, message) in self.net.iter().enumerate() {
            // Of two equal messages, one is delivered now and the other later.
            if index > 0 && self.net[index - 1] == *message {
                continue;
            }
            steps.push(Step::Deliver(index));
            let doubles = matches!(
                message,
                Message::Push(_)
                    | Message::Release(..)
                    | Message::Vacate(..)
                    | Message::Cool(..)
                    | Message::Remember(..)
            );
            if disruptions && doubles {
                steps.push(Step::Double(index));
            }
            if disruptions && self.writes_only_its_ticket(message) {
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
                if disruptions {
                    steps.push(Step::Kill(index));
                }
            }
        }
        if disruptions && self.server.current().is_none() {
            steps.push(Step::ForeignOwner);
        }
        if disruptions && matches!(self.server.current(), Some((Value::Done(_), _))) {
            steps.push(Step::Forget);
        }
        if disruptions && !self.server.document.queue.is_empty() {
            steps.push(Step::QueueLost);
        }
        if self.clock_may_be_stepped(limits) {
            steps.push(Step::ClockJumps);
        }
        steps
    }

    /// Returns whether the server answers a request with no write except the ticket.
    fn writes_only_its_ticket(&self, message: &Message) -> bool {
        let Message::Ask(ask, ..) = message else {
            return false;
        };
        let found = self.server.current();
        let taken = found.is_some_and(|(value, _)| value != Value::Held(ask.token));
        taken && ask.queue && ask.replaces.is_none()
    }

    /// Returns whether the server's clock may jump now.
    ///
    /// It may jump forward while no process has the key, or is about to get it. It may jump back
    /// before any lease or grant can have expired.
    fn clock_may_be_stepped(&self, limits: &Limits) -> bool {
        let Some(step) = limits.step.filter(|_| !self.stepped) else {
            return false;
        };
        if step < 0 {
            return self.ticks <= 1;
        }
        let Some((Value::Held(owner), _)) = self.server.current() else {
            return true;
        };
        let process = &self.processes[usize::from(owner.process)];
        let waits = process.waiter.as_ref().is_some_and(|one| one.name == owner);
        let holds = process.owned.as_ref().is_some_and(|one| one.name == owner);
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
            // Processes are alike, so they begin in the order of their numbers.
            None if process.owned.is_none() && begins && self.is_next(index) => {
                steps.push(Step::Begin(index));
            }
            None => {}
        }
        if process.joined < limits.line && (process.waiter.is_some() || process.owned.is_some()) {
            steps.push(Step::Line(index));
        }
        if let Some(owned) = &process.owned {
            steps.push(Step::End(index));
            if limits.gaps {
                steps.push(Step::Vacate(index));
            }
            if limits.cooldown_millis.is_some() {
                steps.push(match limits.records {
                    true => Step::Remember(index),
                    false => Step::Cool(index),
                });
            }
            if limits.unanswered && owned.extending.is_some() {
                steps.push(Step::RenewalUnanswered(index));
            }
            if limits.longer_millis.is_some() && !owned.served {
                steps.push(Step::Serve(index));
            }
        }
        if self.is_due(process) {
            steps.push(Step::RunKeeper(index));
        }
    }

    fn is_next(&self, index: u8) -> bool {
        index == 0 || self.processes[usize::from(index) - 1].begun > 0
    }

    fn is_due(&self, process: &Process) -> bool {
        let now = self.now();
        let owned = process.owned.as_ref();
        let late_duplicate = process.late_duplicates.first();
        let handed_over_until = process.handed_over_until;
        owned.is_some_and(|one| one.lease.due().is_some_and(|due| due <= now))
            || late_duplicate.is_some_and(|late_duplicate| late_duplicate.at <= now)
            || handed_over_until.is_some_and(|at| at <= now)
    }
}
