//! Each operation of a lock as a step of the protocol, and its reply as an outcome.

use std::sync::Arc;

use super::state::MemoryState;
use crate::base::clock::ServerTime;
use crate::lease::cohort::MOST;
use crate::protocol::{self, Document, Ended, Reply, step};
use crate::store::steps::{granted, lasts, outcome_of, refusal, step_of};
use crate::store::{AcquireAll, Extended, Extension, Failure, Operation, Outcome, Remembered};

impl MemoryState {
    pub(super) fn run(&mut self, operation: Operation, now: ServerTime) -> Outcome {
        match operation {
            Operation::AcquireAll(all) => self.acquire_all(&all, now),
            Operation::Raise(raise) => {
                let fence = u64::from(raise.fence) + u64::from(MOST);
                self.mark = self.mark.max(fence);
                Outcome::Raised
            }
            Operation::Extend(extensions) => {
                let each = extensions.iter().map(|one| self.extend(one, now));
                Outcome::Extended(each.collect())
            }
            Operation::Clock(_) => Outcome::Clock(now),
            Operation::Vote(vote) => Outcome::Vote(self.vote(vote, now)),
            Operation::Operator(operation) => Outcome::Operator(self.operate(operation, now)),
            operation => self.run_step(&operation, now),
        }
    }

    /// Runs an operation on one key.
    fn run_step(&mut self, operation: &Operation, now: ServerTime) -> Outcome {
        if let Operation::Acquire(_) = operation
            && let Err(failure) = self.countable(now)
        {
            return Outcome::Failed(failure);
        }
        let Some((key, one)) = step_of(operation) else {
            return Outcome::Failed(Failure::not_understood());
        };
        let outcome = self.on(key, now, |document, around| {
            let reply = step(document, &one, around);
            outcome_of(operation, &reply, document, now)
        });
        if let Outcome::Remembered(Remembered::Yes) = outcome {
            self.shrink_records();
        }
        outcome
    }

    fn acquire_all(&mut self, all: &AcquireAll, now: ServerTime) -> Outcome {
        if let Err(failure) = self.countable(now) {
            return Outcome::Failed(failure);
        }
        // The first key's step runs on all of them. The others are put aside so long.
        let mut documents: Vec<Document> =
            all.leases.iter().map(|(key, _)| self.take(key)).collect();
        let Some((first, _)) = all.leases.first() else {
            return Outcome::Failed(Failure::not_understood());
        };
        let outcome = self.on(first, now, |_, around| {
            match protocol::acquire_all(&mut documents, &all.leases, lasts(all.ttl), around) {
                Reply::Granted(fence) => granted(fence),
                Reply::BusyAt(index, refused) => {
                    let token = all.leases[index].1;
                    Outcome::BusyAt(index, refusal(&documents[index], &refused, token, now))
                }
                _ => Outcome::Failed(Failure::not_understood()),
            }
        });
        for ((key, _), document) in all.leases.iter().zip(documents) {
            self.put(key, document);
        }
        outcome
    }

    /// Takes the state of a key out.
    fn take(&mut self, key: &str) -> Document {
        self.keys.remove(key).unwrap_or_default()
    }

    /// Puts the state of a key back.
    fn put(&mut self, key: &Arc<str>, document: Document) {
        if !document.has_record() {
            self.records.remove(key);
        }
        if !document.is_idle() {
            self.keys.insert(Arc::clone(key), document);
        }
    }

    pub(super) fn step(
        &mut self,
        key: &Arc<str>,
        operation: &protocol::Operation,
        now: ServerTime,
    ) -> Reply {
        self.on(key, now, |document, around| {
            step(document, operation, around)
        })
    }

    fn extend(&mut self, extension: &Extension, now: ServerTime) -> Extended {
        let operation = protocol::Operation::Extend {
            token: extension.token,
            ttl: lasts(extension.ttl),
        };
        match self.step(&extension.key, &operation, now) {
            Reply::Done(Ended::Yes) => Extended::Yes,
            _ => Extended::NotOurs,
        }
    }
}
