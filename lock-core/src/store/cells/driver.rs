//! One operation on one key: guess, step, swap.

use std::sync::Arc;
use std::time::Duration;

use super::codec::{Cell, decode, owners};
use super::guesses::{Guess, Guesses};
use super::work::Work;
use super::{Cells, PASSES, Stored, Swapped, Written};
use crate::base::clock::{Clock, ServerTime};
use crate::base::join::join_all;
use crate::base::machine::{fill, sleep};
use crate::base::token::{Address, Token};
use crate::protocol::{self, News, Operation as Step, Push, Refused, Reply};
use crate::store::handed_off::HandedOff;
use crate::store::steps::{granted, lasts, outcome_of, step_of};
use crate::store::{Extended, Extension, Failure, Operation, Outcome, Raise};

/// How often an acquire asks for a key that a transaction checks, before it takes the key for held.
pub(super) const PATIENCE: u32 = 30;
/// The refusal of such a key. Its caller asks again after 50 ms.
pub(super) const CHECKED: Refused = Refused {
    left: Some(50),
    queued: false,
    is_full: false,
};

/// Locks over cells.
pub(crate) struct CellStore<C> {
    pub(crate) cells: C,
    pub(super) manager: Address,
    guesses: Guesses,
    pub(super) handed_off: HandedOff,
}

/// The reply of a step that the store has, or that follows from what was read.
pub(super) struct Done {
    pub(super) reply: Reply,
    /// The key after the step.
    pub(super) cell: Arc<Cell>,
    /// The clock of the store, read after the operation began.
    pub(super) now: ServerTime,
}

impl<C: Cells> CellStore<C> {
    pub(crate) fn new(cells: C, manager: Address) -> Self {
        Self {
            cells,
            manager,
            guesses: Guesses::default(),
            handed_off: HandedOff::default(),
        }
    }

    pub(crate) async fn run(&self, operation: Operation) -> Outcome {
        let outcome = match &operation {
            Operation::AcquireAll(all) => self.acquire_all(all).await,
            Operation::Extend(extensions) => Ok(self.extend(extensions).await),
            Operation::Raise(raise) => self.raise(raise).await,
            Operation::Clock(_) => self.cells.read(&[]).await.map(|it| Outcome::Clock(it.now)),
            Operation::Operator(operator) => self.operate(operator).await.map(Outcome::Operator),
            _ => self.one(&operation).await,
        };
        outcome.unwrap_or_else(Outcome::Failed)
    }

    async fn one(&self, operation: &Operation) -> Result<Outcome, Failure> {
        let Some((key, step)) = step_of(operation) else {
            return Err(Failure::misconfigured(
                "a node of a quorum is a Redis server, and locks on one database need no quorum",
            ));
        };
        let done = self.step(key, step).await?;
        let owner = match operation {
            Operation::Acquire(acquire) => done.cell.fence_of(acquire.token),
            _ => None,
        };
        Ok(match (&done.reply, owner) {
            (Reply::Granted(_), Some(fence)) => granted(fence),
            (reply, _) => match outcome_of(operation, reply, &done.cell.document, done.now) {
                Outcome::Busy(mut refusal) => {
                    refusal.pushed &= self.cells.listens();
                    Outcome::Busy(refusal)
                }
                outcome => outcome,
            },
        })
    }

    async fn extend(&self, extensions: &[Extension]) -> Outcome {
        let each = extensions.iter().map(|one| {
            let (token, ttl) = (one.token, lasts(one.ttl));
            self.step(&one.key, Step::Extend { token, ttl })
        });
        let answers = join_all(each).await.into_iter();
        let answers = answers.map(|answer| match answer.map(|done| done.reply) {
            Ok(Reply::Done(protocol::Ended::Yes)) => Extended::Yes,
            Ok(_) => Extended::NotOurs,
            Err(_) => Extended::Unknown,
        });
        Outcome::Extended(answers.collect())
    }

    /// Renews a lease, and gives it the fencing token of a lock of several keys. The SQL of the application then finds it by this
    /// token.
    async fn raise(&self, raise: &Raise) -> Result<Outcome, Failure> {
        let (token, ttl) = (raise.token, lasts(raise.ttl));
        // Without the passes in the process, which no row has.
        let fence = u64::from(raise.fence) / PASSES * PASSES;
        let step = Step::Extend { token, ttl };
        let done = self.raising_step(&raise.key, step, Some((token, fence)));
        match done.await?.reply {
            Reply::Done(protocol::Ended::Yes) => Ok(Outcome::Raised),
            _ => Err(Failure::refused(
                "a key of the lock was lost while the others were acquired",
            )),
        }
    }

    /// Runs a step until the store has it.
    pub(super) async fn step(&self, key: &Arc<str>, step_of: Step) -> Result<Done, Failure> {
        self.raising_step(key, step_of, None).await
    }

    /// Runs a step, and gives an owner another fencing token by it.
    async fn raising_step(
        &self,
        key: &Arc<str>,
        step_of: Step,
        raised: Option<(Token, u64)>,
    ) -> Result<Done, Failure> {
        let mut work = Work {
            guess: self.guess(key),
            fact: None,
            deaf: self.deaf(),
            step: step_of,
            raised,
        };
        let mut misses = 0;
        loop {
            let now = work.fact.unwrap_or_else(|| self.cells.clock());
            let (reply, after, pushes) = work.run(now);
            let Some(after) = after else {
                if work.fact.is_some() {
                    return Ok(work.done(reply));
                }
                if work.acquires() && work.guess.seen.revision != 0 {
                    // A first write finds out in one trip, and succeeds where the key is free by now.
                    work.guess = Guess::default();
                    continue;
                }
                let read = self.cells.read(std::slice::from_ref(key)).await?;
                let stored = read.stored.into_iter().next().flatten();
                self.learn(key, &mut work, stored, Some(read.now))?;
                continue;
            };
            let tells = !pushes.is_empty();
            let given = |push: &Push| matches!(push.news, News::Given { .. });
            let gives = !after.document.queue.is_empty() && pushes.iter().any(given);
            let swap = work.swap(key, &after, pushes, now);
            let bytes = Arc::clone(&swap.bytes);
            match self.cells.swap(vec![swap]).await? {
                Swapped::Done(written) => {
                    let done = self.written(key, &bytes, written, reply);
                    if gives {
                        self.handed_off.note_key(key, Duration::ZERO);
                    }
                    if tells {
                        self.cells.told().await;
                    }
                    return done;
                }
                Swapped::Deaf(addresses) => work.deaf.extend(addresses),
                // Another operation may have changed the key since, so this is no fact.
                Swapped::Outrun(stored) => self.learn(key, &mut work, Some(stored), None)?,
                Swapped::Again => {
                    misses += 1;
                    pause(misses).await;
                }
                Swapped::Changed(stored, now) => {
                    misses += 1;
                    let before = work.guess.seen;
                    self.learn(key, &mut work, stored, Some(now))?;
                    let is_locked = before.revision != 0 && work.guess.seen == before;
                    if is_locked && misses > PATIENCE && work.acquires() {
                        return Ok(work.done(Reply::Busy(CHECKED)));
                    }
                    if is_locked {
                        pause(misses).await;
                    }
                }
            }
        }
    }

    /// Takes what the store has for a fact, if the time is known at which it had that.
    fn learn(
        &self,
        key: &Arc<str>,
        work: &mut Work,
        stored: Option<Stored>,
        now: Option<ServerTime>,
    ) -> Result<(), Failure> {
        work.guess = guess_of(stored)?;
        work.fact = now;
        // A manager that did not listen may do so by now. It has asked again then, and counts on its place.
        work.deaf = self.deaf();
        // A caller that waits asks again at once.
        let guess = work.guess.clone();
        self.guesses.note(key, guess, None, Clock::System.now());
        Ok(())
    }

    /// The managers of which it is known before a write that they do not listen.
    fn deaf(&self) -> Vec<Address> {
        let is_deaf = !self.cells.listens();
        is_deaf.then_some(self.manager).into_iter().collect()
    }

    pub(super) fn guess(&self, key: &str) -> Guess {
        self.guesses.of(key, Clock::System.now())
    }

    /// Notes a write, and binds what it has left open.
    pub(super) fn written(
        &self,
        key: &Arc<str>,
        bytes: &[u8],
        written: Written,
        reply: Reply,
    ) -> Result<Done, Failure> {
        let Written { revision, at } = written;
        let cell = decode(bytes, revision, at).ok_or_else(Failure::not_understood)?;
        let cell = Arc::new(cell);
        let document = &cell.document;
        let waiters = document.queue.iter().map(|waiter| waiter.token);
        let ours = owners(document)
            .chain(waiters)
            .any(|token| token.address() == self.manager);
        let ends = document.ends().unwrap_or(0).max(document.queue_ends);
        let lasts = Duration::from_millis(ends.saturating_sub(at.0 / 1000));
        let guess = Guess {
            cell: Arc::clone(&cell),
            seen: written,
        };
        let lasts = ours.then_some(lasts);
        self.guesses.note(key, guess, lasts, Clock::System.now());
        Ok(Done {
            reply,
            cell,
            now: at,
        })
    }
}

/// Reads what the store has of a key. What is absent or over is an empty cell.
pub(super) fn guess_of(stored: Option<Stored>) -> Result<Guess, Failure> {
    let Some(Stored { written, bytes }) = stored else {
        return Ok(Guess::default());
    };
    let Some(cell) = decode(&bytes, written.revision, written.at) else {
        return Err(Failure::misconfigured(
            "a process with a later version of lock-core has written this key; update this process",
        ));
    };
    Ok(Guess {
        cell: Arc::new(cell),
        seen: written,
    })
}

/// Waits for a write of another process, or for a transaction that checks the key: up to 1 ms, and later up to 16 ms.
///
/// Where the key has changed, no process waits, because another process that releases the key and takes it again would always
/// be faster.
pub(super) async fn pause(misses: u32) {
    let mut random = [0];
    fill(&mut random);
    let longest = match misses {
        0..20 => 4,
        _ => 64,
    };
    sleep(Duration::from_micros(u64::from(random[0]) * longest)).await;
}
