//! Those who want the lock.

use super::{Limits, Message, World, Wrong};
use crate::model::fault::Fault;
use crate::model::process::{Name, Tenure, Turn, Waiter};
use crate::model::server::Ask;

impl World {
    pub(super) fn begin(&mut self, index: u8, limits: &Limits) {
        let process = &mut self.processes[usize::from(index)];
        process.begun += 1;
        let name = Name {
            process: index,
            lease: process.begun,
        };
        process.waiter = Some(Waiter::new(name, limits.terms()));
        // A key that was given away a moment ago is known to be waited for.
        let queue = process.gave.is_some();
        self.ask(index, queue, limits);
    }

    /// The next in line of the process asks, if there is one.
    pub(super) fn promote(&mut self, index: u8, limits: &Limits) {
        let process = &mut self.processes[usize::from(index)];
        if process.line > 0 {
            process.line -= 1;
            self.begin(index, limits);
        }
    }

    pub(super) fn ask(&mut self, index: u8, queue: bool, limits: &Limits) {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        let replaces = process.to_step_over();
        let Some(waiter) = &mut process.waiter else {
            return;
        };
        waiter.asks(queue, now);
        let ask = Ask {
            token: waiter.name,
            ttl: limits.ttl_millis,
            queue,
            replaces,
        };
        let (name, round) = (waiter.name, waiter.rounds);
        // Nobody waits for what was answered to an earlier question.
        if !limits.has(Fault::AnswerToAnotherQuestion) {
            self.forget_answers(name);
        }
        self.net.push(Message::Ask(ask, now, round));
    }

    fn forget_answers(&mut self, name: Name) {
        self.net.retain(|message| match message {
            Message::Answer(other, ..) => *other != name,
            _ => true,
        });
    }

    pub(super) fn cancel(&mut self, index: u8, limits: &Limits) {
        let Some(mut waiter) = self.processes[usize::from(index)].waiter.take() else {
            return;
        };
        waiter.gives_up(limits.fault);
        let name = waiter.name;
        self.forget_answers(name);
        if waiter.known && !limits.has(Fault::CancelledIsNotUndone) {
            self.release(name, None, waiter.twin, limits);
        }
        self.promote(index, limits);
    }

    /// A tenure begins.
    pub(super) fn holds(&mut self, index: u8, tenure: Tenure) -> Result<(), Wrong> {
        if tenure.is_valid(self.now()) {
            if tenure.fence <= self.acted_on {
                return Err(Wrong::FenceNotHigher);
            }
            self.acted_on = tenure.fence;
        }
        self.processes[usize::from(index)].tenure = Some(tenure);
        Ok(())
    }

    pub(super) fn turns(&mut self, index: u8, turn: Turn, limits: &Limits) -> Result<(), Wrong> {
        match turn {
            Turn::Waits => Ok(()),
            Turn::Asks => {
                self.ask(index, true, limits);
                Ok(())
            }
            Turn::Holds(tenure) => {
                let process = &mut self.processes[usize::from(index)];
                process.waiter = None;
                process.forget_all();
                self.holds(index, tenure)
            }
        }
    }
}
