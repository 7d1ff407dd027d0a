//! Each operation of a lock as a step of the protocol, and its reply as an outcome.

use std::sync::Arc;

use super::state::{MemoryState, free_after, lasts, millis};
use crate::base::clock::ServerTime;
use crate::base::fence::FencingToken;
use crate::base::record::{Record, StoredRecord};
use crate::base::token::Token;
use crate::lease::cohort::{GAP, MOST};
use crate::lease::deadline::GRANT;
use crate::protocol::{
    self, Acquire, Document, End, Ended, Phase, Refused, Reply, Wanted, Way, step,
};
use crate::store::{
    AcquireAll, AcquireCommand, Extended, Extension, Failure, Forgotten, Operation, Outcome,
    Refusal, Release, Released, Remembered, Swap, Swapped,
};

impl MemoryState {
    pub(super) fn run(&mut self, operation: Operation, now: ServerTime) -> Outcome {
        match operation {
            Operation::Acquire(acquire) => self.acquire(&acquire, now),
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
            Operation::Release(release) => self.release(&release, Way::Release, now),
            Operation::Vacate(release) => self.release(&release, Way::Vacate(millis(GAP)), now),
            Operation::Leave(release) => self.release(&release, Way::Leave, now),
            Operation::Cool(release, cooldown) => {
                let way = Way::Cool {
                    span: lasts(cooldown.span),
                    until: cooldown.until_millis.saturating_sub(1),
                };
                self.release(&release, way, now)
            }
            Operation::Remember(release, record) => self.remember(&release, &record, now),
            Operation::Forget(key) => self.forget(&key, now),
            Operation::Clock(_) => Outcome::Clock(now),
            Operation::Swap(swap) => self.swap(&swap, now),
            Operation::Vote(vote) => Outcome::Vote(self.vote(vote, now)),
            Operation::Operator(operation) => Outcome::Operator(self.operate(operation, now)),
        }
    }

    fn acquire(&mut self, acquire: &AcquireCommand, now: ServerTime) -> Outcome {
        if let Err(failure) = self.countable(now) {
            return Outcome::Failed(failure);
        }
        let operation = protocol::Operation::Acquire(asked(acquire));
        self.on(&acquire.key, now, |document, around| {
            match step(document, &operation, around) {
                Reply::Granted(fence) => granted(fence),
                Reply::Busy(refused) => {
                    Outcome::Busy(refusal(document, &refused, acquire.token, now))
                }
                _ => Outcome::Failed(Failure::not_understood()),
            }
        })
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
            let each = documents.iter_mut().zip(&all.leases);
            let mut wanted: Vec<_> = each
                .map(|(document, (_, token))| Wanted {
                    document,
                    token: *token,
                })
                .collect();
            match protocol::acquire_all(&mut wanted, lasts(all.ttl), around) {
                Reply::Granted(fence) => granted(fence),
                Reply::BusyAt(index, refused) => {
                    let (document, token) = (&wanted[index].document, wanted[index].token);
                    Outcome::BusyAt(index, refusal(document, &refused, token, now))
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

    fn swap(&mut self, swap: &Swap, now: ServerTime) -> Outcome {
        let operation = protocol::Operation::Swap {
            from: swap.from,
            to: swap.to,
            ttl: lasts(swap.ttl),
        };
        match self.step(&swap.key, &operation, now) {
            Reply::Done(Ended::Yes) => Outcome::Swapped(Swapped::Yes),
            Reply::Done(Ended::Absent) => Outcome::Swapped(Swapped::Absent),
            Reply::Done(Ended::Other) => Outcome::Swapped(Swapped::Other),
            _ => Outcome::Failed(Failure::not_understood()),
        }
    }

    fn end(&mut self, release: &Release, way: Way, now: ServerTime) -> Option<Ended> {
        let end = protocol::Operation::End(End {
            token: release.token,
            fence: release.fence.map(u64::from),
            way,
        });
        match self.step(&release.key, &end, now) {
            Reply::Ended { how, .. } => Some(how),
            _ => None,
        }
    }

    fn release(&mut self, release: &Release, way: Way, now: ServerTime) -> Outcome {
        match self.end(release, way, now) {
            Some(how) => Outcome::Released(released(how)),
            None => Outcome::Failed(Failure::not_understood()),
        }
    }

    fn remember(&mut self, release: &Release, record: &Record, now: ServerTime) -> Outcome {
        let stored = StoredRecord {
            fence: release.fence.map_or(0, u64::from),
            bytes: record.bytes.clone().into(),
        };
        let way = Way::Remember {
            record: Arc::new(stored),
            lifetime: lasts(record.lifetime),
            ttl: lasts(release.ttl),
        };
        match self.end(release, way, now) {
            Some(Ended::Yes) => {
                self.shrink_records();
                Outcome::Remembered(Remembered::Yes)
            }
            Some(Ended::Absent) => Outcome::Remembered(Remembered::Absent),
            Some(Ended::Other) => Outcome::Remembered(Remembered::Other),
            None => Outcome::Failed(Failure::not_understood()),
        }
    }

    fn forget(&mut self, key: &Arc<str>, now: ServerTime) -> Outcome {
        match self.step(key, &protocol::Operation::Forget, now) {
            Reply::Forgotten(of) => Outcome::Forgotten(Forgotten::Yes, Some(of)),
            Reply::Done(Ended::Absent) => Outcome::Forgotten(Forgotten::Nothing, None),
            _ => Outcome::Forgotten(Forgotten::Held, None),
        }
    }
}

/// The question of an acquire.
pub(super) fn asked(acquire: &AcquireCommand) -> Acquire {
    let replaces = acquire.replaces;
    Acquire {
        token: acquire.token,
        ttl: lasts(acquire.ttl),
        grant: millis(acquire.ttl.min(GRANT)),
        waits: acquire.queues(),
        replaces: replaces.map(|before| before.token),
        used: replaces.and_then(|before| before.fence).map(u64::from),
    }
}

fn granted(fence: u64) -> Outcome {
    match FencingToken::new(fence) {
        Some(fence) => Outcome::Granted(fence),
        None => Outcome::Failed(Failure::not_understood()),
    }
}

pub(super) fn released(how: Ended) -> Released {
    match how {
        Ended::Yes => Released::Yes,
        Ended::Absent => Released::Absent,
        Ended::Other => Released::Other,
    }
}

pub(super) fn refusal(
    document: &Document,
    refused: &Refused,
    token: Token,
    now: ServerTime,
) -> Refusal {
    let is_a_strangers =
        matches!(&document.phase, Phase::Held(hold) if hold.token == Token::NOBODY);
    Refusal {
        cooling: matches!(document.phase, Phase::Closed(_)),
        record: document.record().cloned(),
        remaining: refused.left.map(free_after),
        queued: refused.queued,
        // A client of another library pushes nothing when it releases.
        pushed: refused.queued && !is_a_strangers,
        shared: document.is_shared(),
        full: token.share().filter(|_| refused.is_full),
        server_time: refused.queued.then_some(now),
    }
}
