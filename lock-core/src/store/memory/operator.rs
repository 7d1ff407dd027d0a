//! What an operator sees and does in an embedded store.

use std::time::Duration;

use super::state::{MemoryState, free_after, millis};
use crate::base::clock::ServerTime;
use crate::base::holder_token::HolderToken;
use crate::base::token::Token;
use crate::protocol::{self, Document, Ended, Phase, Reply, Waited, Waiter};
use crate::store::{
    ClosedFor, Event, Force, Forced, Inspect, Inspected, OperatorOperation, OperatorOutcome, Scan,
    Scanned, StoredHolder, Told,
};

/// The number of waiters that an inspection names.
const NAMED: usize = 100;
/// What a client of another library would write.
const STRANGERS_VALUE: &[u8] = b"a stranger's";

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
        let (holders, closed) = holders(document, now);
        let waiters = document.queue.iter().take(NAMED);
        Inspected {
            holder_count: holders.len(),
            holders,
            closed,
            waiters: waiters
                .map(|waiter| (waiter.token.address(), waited(waiter, now)))
                .collect(),
            waiter_count: document.queue.len(),
            mark,
        }
    }

    fn force(&mut self, force: &Force, now: ServerTime) -> Forced {
        let Some(holder) = token_of(&force.holder) else {
            return Forced::Changed;
        };
        let order = protocol::Operation::Force(protocol::Force {
            holder,
            fence: force.fence.map(u64::from),
            grace: millis(force.grace),
            serves: force.register.is_none(),
        });
        let forced = match self.step(&force.key, &order, now) {
            Reply::Told => Forced::Cooling,
            Reply::Done(Ended::Yes) => Forced::Yes,
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

/// The token by which a holder has the key in this store.
fn token_of(holder: &HolderToken) -> Option<Token> {
    match holder.as_bytes() {
        STRANGERS_VALUE => Some(Token::NOBODY),
        _ => holder.token(),
    }
}

fn holders(document: &Document, now: ServerTime) -> (Vec<StoredHolder>, Option<ClosedFor>) {
    let remaining = |ends: u64| Some(free_after(ends.saturating_sub(now.0 / 1000)));
    let holder = |token: Token, ends| StoredHolder {
        token: match token {
            Token::NOBODY => HolderToken::new(STRANGERS_VALUE),
            token => token.into(),
        },
        remaining: remaining(ends),
    };
    let closed = |ends, has_record| ClosedFor {
        remaining: remaining(ends),
        has_record,
    };
    match &document.phase {
        Phase::Free => (Vec::new(), None),
        Phase::Held(hold) => (vec![holder(hold.token, hold.ends)], None),
        Phase::Closed(it) => (Vec::new(), Some(closed(it.until, it.record.is_some()))),
        Phase::Shared(shares) => {
            let live = shares.inside.iter().filter(|place| !place.is_freed);
            let holders = live.map(|place| holder(place.token, place.ends));
            let freed = shares.inside.iter().rfind(|place| place.is_freed);
            let closed = freed.map(|place| closed(place.ends, false));
            (holders.collect(), closed)
        }
    }
}

/// The time since the arrival of a waiter. One that was asked whether it still waits has waited for longer.
fn waited(waiter: &Waiter, now: ServerTime) -> Duration {
    let since = match waiter.waited {
        Waited::Since(arrival) => arrival,
        Waited::Asked(at) | Waited::Answered(at) => at * 1000,
    };
    Duration::from_micros(now.0.saturating_sub(since))
}
