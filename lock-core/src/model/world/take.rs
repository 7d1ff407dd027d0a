//! The effects of a step.

use super::{LONGEST_TRIP, Limits, Message, Step, World, Wrong};
use crate::lease::Extended;
use crate::model::process::{Process, WaitingTask};
use crate::model::server::Value;
use crate::protocol::Way;

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
                self.disruptions += 1;
                if let Message::Ask(ask, _, round) = self.net.remove(index) {
                    self.asked(ask, round, true, limits)?;
                }
            }
            Step::Double(index) => {
                self.disruptions += 1;
                let message = self.net[index].clone();
                self.deliver(message, limits)?;
            }
            Step::Batch(first, second) => {
                let second = self.net.remove(second);
                let first = self.net.remove(first);
                if let (Message::Release(a, af), Message::Release(b, bf)) = (first, second) {
                    // The batch reads the key before it deletes it.
                    let found = self.server.current().map(|(value, _)| value);
                    for (name, fence) in [(a, af), (b, bf)] {
                        let way = match found == Some(Value::Held(name)) {
                            true => Way::Release,
                            false => Way::Leave,
                        };
                        self.serves_end(name, fence, way, limits)?;
                        self.release_arrived(name);
                    }
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
                self.renewed(index, now, Extended::Unknown, limits);
            }
            Step::Cancel(index) => self.cancel(index, limits),
            Step::End(index) => self.end(index, limits)?,
            Step::Vacate(index) => self.vacate(index, limits),
            Step::Cool(index) => self.cool(index, limits),
            Step::Remember(index) => self.remember(index, limits)?,
            Step::Serve(index) => {
                if let Some(owned) = &mut self.processes[usize::from(index)].owned {
                    owned.served = true;
                    owned.lease.serve(limits.longer(), now);
                }
            }
            Step::RunKeeper(index) => self.run_keeper(index, limits),
            Step::Kill(index) => {
                self.disruptions += 1;
                let begun = self.processes[usize::from(index)].begun;
                self.processes[usize::from(index)] = Process {
                    alive: false,
                    begun,
                    ..Process::new()
                };
                self.net.retain(|message| !message.is_for(index));
            }
            Step::ForeignOwner => {
                self.disruptions += 1;
                self.server.goes_to_a_stranger(limits.ttl_millis);
            }
            Step::QueueLost => {
                self.disruptions += 1;
                self.server.document.queue.clear();
            }
            Step::Forget => {
                self.disruptions += 1;
                self.forget();
            }
            Step::ClockJumps => {
                self.stepped = true;
                self.server.moves(limits.step.unwrap_or(0) * 1_000);
            }
        }
        Ok(())
    }

    pub(in crate::model) fn tick(&mut self, micros: u64) {
        self.ticks += 1;
        self.server.moves(micros.cast_signed());
        let now = self.now();
        self.net.retain(|message| match message {
            Message::Ask(_, sent, _) | Message::Extend(_, sent, _) => {
                now.since(*sent) <= LONGEST_TRIP
            }
            _ => true,
        });
    }

    pub(super) fn waiter(&mut self, index: u8) -> &mut WaitingTask {
        let waiter = self.processes[usize::from(index)].waiter.as_mut();
        waiter.expect("only a waiter takes such a step")
    }
}
