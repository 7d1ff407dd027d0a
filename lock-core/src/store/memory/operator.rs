//! What an operator sees and does in an embedded store.

use super::state::MemoryState;
use crate::base::clock::ServerTime;
use crate::protocol::{self, Ended, Reply};
use crate::store::steps::{inspected, order_of};
use crate::store::{
    Event, Force, Forced, Inspect, Inspected, OperatorOperation, OperatorOutcome, Scan, Scanned,
    Told,
};

impl MemoryState {
    pub(super) fn operate(
        &mut self,
        operation: OperatorOperation,
        now: ServerTime,
    ) -> OperatorOutcome {
        match operation {
            OperatorOperation::Inspect(inspect) => {
                OperatorOutcome::Inspected(Box::new(self.inspect(&inspect, now)))
            }
            OperatorOperation::Force(force) => OperatorOutcome::Forced(self.force(&force, now)),
            OperatorOperation::Scan(scan) => OperatorOutcome::Scanned(self.scan(&scan, now)),
            OperatorOperation::ReadCard(name) => {
                let manager = self.listeners.get(&name.address);
                let identity = manager.and_then(|events| events.identity.as_deref().cloned());
                OperatorOutcome::Card(identity)
            }
            // A manager that listens has its identity with it.
            OperatorOperation::WriteCard(..) => OperatorOutcome::Told(Told::Maybe),
            OperatorOperation::Ask(question) => {
                let manager = question.holder.address();
                let manager = manager.and_then(|address| self.listeners.get(&address));
                let Some(events) = manager.cloned() else {
                    return OperatorOutcome::Told(Told::NoReceiver);
                };
                self.messages.push((events, Event::Asked(question)));
                OperatorOutcome::Told(Told::Maybe)
            }
            OperatorOperation::Answer(answer) => {
                let event = Event::Answered {
                    number: answer.number,
                    held: answer.held,
                };
                let manager = self.listeners.get(&answer.to).cloned();
                self.messages.extend(manager.map(|events| (events, event)));
                OperatorOutcome::Told(Told::Maybe)
            }
        }
    }

    fn inspect(&mut self, inspect: &Inspect, now: ServerTime) -> Inspected {
        let mark = match inspect.register {
            Some(register) => self.registers.highest(register),
            None => self.mark,
        };
        let Some(document) = self.look(&inspect.key, now) else {
            return Inspected {
                mark,
                ..Inspected::default()
            };
        };
        inspected(document, mark, now)
    }

    fn force(&mut self, force: &Force, now: ServerTime) -> Forced {
        let Some(order) = order_of(force) else {
            return Forced::Changed;
        };
        let holder = order.holder;
        let order = protocol::Operation::Force(order);
        let forced = match self.step(&force.key, &order, now) {
            Reply::Told => Forced::Told,
            Reply::Done(Ended::Yes) => Forced::Freed,
            _ => return Forced::Changed,
        };
        if let Some((register, number)) = force.register {
            self.registers.raise(register, number, holder);
        }
        forced
    }

    fn scan(&self, scan: &Scan, now: ServerTime) -> Scanned {
        let live = self.keys.iter();
        let live = live.filter(|(_, document)| document.ends() >= Some(now.0 / 1000));
        let keys = live
            .map(|(key, _)| key)
            .filter(|key| scan.pattern.matches(key));
        let mut keys: Vec<_> = keys.cloned().collect();
        keys.sort_unstable();
        Scanned { keys, next: None }
    }
}
