//! Waiters.

use super::{Limits, Message, World, Wrong};
use crate::model::fault::ModelFault;
use crate::model::message::{Ask, Name};
use crate::model::process::{NextMove, OwnedLease, WaitingTask};

impl World {
    pub(super) fn begin(&mut self, index: u8, limits: &Limits) {
        let process = &mut self.processes[usize::from(index)];
        process.begun += 1;
        let name = Name {
            process: index,
            lease: process.begun,
        };
        process.waiter = Some(WaitingTask::new(name, limits.options()));
        // A key that was handed over a moment ago is known to have waiters.
        let queue = process.handed_over_until.is_some();
        self.ask(index, queue, limits);
    }

    /// Makes the next task of the process ask, if there is one.
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
        let replaces = process.to_supersede();
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
        // No task waits for the answer to an earlier request.
        if !limits.has(ModelFault::AnswerToEarlierRequest) {
            self.forget_answers(name);
        }
        self.net.push(Message::Ask(ask, now, round));
    }

    fn forget_answers(&mut self, name: Name) {
        self.net.retain(|message| match message {
            Message::AcquireReply(other, ..) => *other != name,
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
        if waiter.known && !limits.has(ModelFault::CancelledNotUndone) {
            self.release(name, None, waiter.late_duplicate);
        }
        self.promote(index, limits);
    }

    /// Starts an owner.
    pub(super) fn holds(&mut self, index: u8, owned: OwnedLease) -> Result<(), Wrong> {
        if self
            .cooling
            .is_some_and(|cooling| cooling.name == owned.name)
        {
            return Err(Wrong::RanAfterRecord);
        }
        if owned.is_valid(self.now()) {
            if owned.fence <= self.acted_on {
                return Err(Wrong::FenceNotHigher);
            }
            self.acted_on = owned.fence;
        }
        self.processes[usize::from(index)].owned = Some(owned);
        Ok(())
    }

    pub(super) fn apply(
        &mut self,
        index: u8,
        next_move: NextMove,
        limits: &Limits,
    ) -> Result<(), Wrong> {
        match next_move {
            NextMove::Waits => Ok(()),
            NextMove::Asks => {
                self.ask(index, true, limits);
                Ok(())
            }
            NextMove::Ends => {
                // All tasks behind it share the answer.
                self.processes[usize::from(index)].line = 0;
                self.cancel(index, limits);
                Ok(())
            }
            NextMove::Holds(owned) => {
                let process = &mut self.processes[usize::from(index)];
                process.waiter = None;
                process.forget_all();
                self.holds(index, owned)
            }
        }
    }
}
