//! What a step does.

use super::{LONGEST_TRIP, Limits, Message, Step, World, Wrong};
use crate::lease::Renewal;
use crate::model::process::{Process, Waiter};
use crate::model::server::{Entry, Value};

impl World {
    pub(super) fn take(&mut self, step: Step, limits: &Limits) -> Result<(), Wrong> {
        let now = self.now();
        match step {
            Step::Tick(micros) => self.tick(micros),
            Step::Begin(index) => self.begin(index, limits),
            Step::Line(index) => {
                let process = &mut self.processes[usize::from(index)];
                process.line += 1;
                process.joined += 1;
            }
            Step::Deliver(index) => {
                let message = self.net.remove(index);
                self.deliver(message, limits)?;
            }
            Step::Refuse(index) => {
                self.mischief += 1;
                if let Message::Ask(ask, _, round) = self.net.remove(index) {
                    self.asked(ask, round, true, limits)?;
                }
            }
            Step::Double(index) => {
                self.mischief += 1;
                let message = self.net[index].clone();
                self.deliver(message, limits)?;
            }
            Step::Batch(first, second) => {
                let second = self.net.remove(second);
                let first = self.net.remove(first);
                if let (Message::Release(a, af), Message::Release(b, bf)) = (first, second) {
                    let releases = [(a, af), (b, bf)];
                    self.serve(limits, &[a, b], |server, around| {
                        server.release_two(0, releases, around);
                    })?;
                    self.given_back(a);
                    self.given_back(b);
                }
            }
            Step::AskAgain(index) => {
                let waiter = self.waiter(index);
                waiter.gives_up(limits.fault);
                self.ask(index, true, limits);
            }
            Step::RenewalUnanswered(index) => {
                self.net
                    .retain(|message| !matches!(message, Message::Extended(name, ..) if name.process == index));
                self.renewed(index, now, Renewal::Unknown, limits);
            }
            Step::Cancel(index) => self.cancel(index, limits),
            Step::End(index) => self.end(index, limits)?,
            Step::Vacate(index) => self.vacate(index, limits),
            Step::Cool(index) => self.cool(index, limits),
            Step::Serve(index) => {
                if let Some(tenure) = &mut self.processes[usize::from(index)].tenure {
                    tenure.served = true;
                    tenure.lease.serve(limits.longer(), now);
                }
            }
            Step::Look(index) => self.look(index, limits),
            Step::Kill(index) => {
                self.mischief += 1;
                let begun = self.processes[usize::from(index)].begun;
                self.processes[usize::from(index)] = Process {
                    alive: false,
                    begun,
                    ..Process::new()
                };
                self.net.retain(|message| !message.is_for(index));
            }
            Step::Stranger => {
                self.mischief += 1;
                let ends = self.server.micros / 1_000 + limits.ttl_millis;
                let value = Value::Stranger;
                self.server.keys[0].entry = Some(Entry { value, ends });
            }
            Step::QueueLost => {
                self.mischief += 1;
                self.server.keys[0].queue.clear();
            }
            Step::ClockJumps => {
                self.stepped = true;
                let step = limits.step.unwrap_or(0) * 1_000;
                self.server.micros = self.server.micros.saturating_add_signed(step);
                self.server.forget_what_ran_out();
            }
        }
        Ok(())
    }

    pub(in crate::model) fn tick(&mut self, micros: u64) {
        self.ticks += 1;
        self.server.micros += micros;
        self.server.forget_what_ran_out();
        let now = self.now();
        self.net.retain(|message| match message {
            Message::Ask(_, sent, _) | Message::Extend(_, sent, _) => {
                now.since(*sent) <= LONGEST_TRIP
            }
            _ => true,
        });
    }

    pub(super) fn waiter(&mut self, index: u8) -> &mut Waiter {
        let waiter = self.processes[usize::from(index)].waiter.as_mut();
        waiter.expect("only a waiter takes such a step")
    }
}
