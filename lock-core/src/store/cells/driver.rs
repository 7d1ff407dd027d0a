//! One operation on one key: guess, step, swap.

use std::sync::Arc;
use std::time::Duration;

use super::codec::{Cell, Change, decode, owners};
use super::guesses::{Guess, Guesses};
use super::{Cells, OwnerFence, Stored, Swap, Swapped, Written};
use crate::base::clock::{Clock, ServerTime};
use crate::base::join::join_all;
use crate::base::machine::{fill, sleep};
use crate::base::token::{Address, Token};
use crate::protocol::{
    self, Around, End, News, Operation as Step, Phase, Push, Refused, Reply, Way, step,
};
use crate::store::handed_off::HandedOff;
use crate::store::steps::{granted, lasts, outcome_of, step_of};
use crate::store::{Extended, Extension, Failure, Operation, Outcome};

/// The most waiters in the queue of a key. More of them ask again.
const MOST_WAITERS: usize = 256;
/// How often an acquire asks for a key that a transaction checks, before it takes the key for held.
const PATIENCE: u32 = 30;
/// How soon a caller asks again for such a key.
const CHECKED_FOR: u64 = 50;

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

    /// Runs a step until the store has it.
    pub(super) async fn step(&self, key: &Arc<str>, step_of: Step) -> Result<Done, Failure> {
        let mut work = Work {
            guess: self.guess(key),
            fact: None,
            deaf: self.deaf(),
            step: step_of,
        };
        let mut misses = 0;
        loop {
            let now = work.fact.unwrap_or_else(|| self.cells.clock());
            let (reply, after, pushes) = work.run(now);
            let Some(after) = after else {
                if work.fact.is_some() {
                    return Ok(work.done(reply));
                }
                if work.acquires() && work.guess.revision != 0 {
                    // A first write finds out in one trip, and succeeds where the key is free by now.
                    work.guess = Guess::default();
                    continue;
                }
                let read = self.cells.read(std::slice::from_ref(key)).await?;
                let stored = read.stored.into_iter().next().flatten();
                self.learn(key, &mut work, stored, read.now)?;
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
                Swapped::Again => {
                    misses += 1;
                    pause(misses).await;
                }
                Swapped::Changed(stored, now) => {
                    misses += 1;
                    let before = work.guess.revision;
                    self.learn(key, &mut work, stored, now)?;
                    let is_locked = before != 0 && work.guess.revision == before;
                    if is_locked && misses > PATIENCE && work.acquires() {
                        let reply = Reply::Busy(Refused {
                            left: Some(CHECKED_FOR),
                            queued: false,
                            is_full: false,
                        });
                        return Ok(work.done(reply));
                    }
                    if is_locked {
                        pause(misses).await;
                    }
                }
            }
        }
    }

    /// Takes what the store has for a fact.
    fn learn(
        &self,
        key: &Arc<str>,
        work: &mut Work,
        stored: Option<Stored>,
        now: ServerTime,
    ) -> Result<(), Failure> {
        work.guess = guess_of(stored)?;
        work.fact = Some(now);
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
            revision,
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
        revision: written.revision,
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

/// An operation that is under way.
struct Work {
    guess: Guess,
    /// The clock of the store when it had that; `None`: it may have something else.
    fact: Option<ServerTime>,
    /// The addresses of managers that do not listen.
    deaf: Vec<Address>,
    step: Step,
}

impl Work {
    /// Runs the step on what is believed. Returns its reply, the cell behind it unless nothing is to be written, and its
    /// messages.
    fn run(&self, now: ServerTime) -> (Reply, Option<Cell>, Vec<Push>) {
        let before = &self.guess.cell;
        let mut document = before.document.clone();
        let listens = |address| !self.deaf.contains(&address);
        let mut around = Around {
            now,
            // The number of the write takes the place of the mark.
            mark: 0,
            used: 0,
            has_room: true,
            listens: &listens,
            pushes: Vec::new(),
        };
        let reply = match &self.step {
            // The queue is full.
            Step::Acquire(ask) if ask.waits && self.is_crowded(ask.token) => {
                let ask = protocol::Acquire {
                    waits: false,
                    ..ask.clone()
                };
                step(&mut document, &Step::Acquire(ask), &mut around)
            }
            one => step(&mut document, one, &mut around),
        };
        let mut settled = before.document.clone();
        settled.settle(around.now_ms());
        let swapped = match self.step {
            Step::Swap { from, to, .. } => Some((from, to)),
            _ => None,
        };
        let changes = document != settled || self.proves();
        let after = changes.then(|| before.followed_by(document, swapped));
        (reply, after, around.pushes)
    }

    /// Returns whether something is written in any case. The undo of an acquire that was not answered proves by a write that
    /// the acquire comes to nothing, also where the store still works on it.
    fn proves(&self) -> bool {
        let way = match &self.step {
            Step::End(End {
                fence: None, way, ..
            }) => way,
            _ => return false,
        };
        matches!(way, Way::Release | Way::Leave)
    }

    fn is_crowded(&self, token: Token) -> bool {
        let queue = &self.guess.cell.document.queue;
        queue.len() >= MOST_WAITERS && !queue.iter().any(|waiter| waiter.token == token)
    }

    fn acquires(&self) -> bool {
        matches!(self.step, Step::Acquire(_))
    }

    /// The lease whose end counts from the write, also where the end has not changed.
    fn touched(&self) -> Option<Token> {
        match &self.step {
            Step::Acquire(ask) => Some(ask.token),
            Step::Extend { token, .. } => Some(*token),
            Step::Swap { to, .. } => Some(*to),
            Step::End(_) | Step::Forget | Step::Force(_) => None,
        }
    }

    fn swap(&self, key: &Arc<str>, after: &Cell, pushes: Vec<Push>, now: ServerTime) -> Swap {
        let releases =
            matches!(&self.step, Step::End(end) if matches!(end.way, Way::Release | Way::Leave));
        let gives = |push: &Push| matches!(push.news, News::Given { .. });
        let may_be_lost = releases && !pushes.iter().any(gives);
        let change = Change {
            before: &self.guess.cell.document,
            after,
            touched: self.touched(),
            now,
        };
        Swap {
            may_be_lost,
            ..swap_of(key, &self.guess, &change, pushes)
        }
    }

    fn done(self, reply: Reply) -> Done {
        let now = self.fact.unwrap_or(ServerTime(0));
        let mut document = self.guess.cell.document.clone();
        document.settle(now.0 / 1000);
        let cell = Arc::new(self.guess.cell.followed_by(document, None));
        Done { reply, cell, now }
    }
}

/// Returns the swap of a guess for what comes behind a step.
pub(super) fn swap_of(
    key: &Arc<str>,
    guess: &Guess,
    change: &Change<'_>,
    pushes: Vec<Push>,
) -> Swap {
    let after = change.after;
    let encoded = change.encode();
    let stays = |token: Token| guess.cell.fence_of(token) == after.fence_of(token);
    let until = change.before.stays_until(change.now.0 / 1000);
    let until = until.map_or(u64::MAX, |last| last.saturating_add(1).saturating_mul(1000));
    Swap {
        key: Arc::clone(key),
        revision: guess.revision,
        bytes: encoded.bytes.into(),
        ends: encoded.ends,
        lasts: encoded.lasts,
        now: change.now,
        until: ServerTime(until),
        fence: owner_fence(after),
        ends_a_hold: guess.revision == 0 || !owners(&guess.cell.document).all(stays),
        may_be_lost: false,
        pushes,
    }
}

fn owner_fence(cell: &Cell) -> OwnerFence {
    match &cell.document.phase {
        Phase::Held(hold) if hold.token.share().is_none() => match cell.fence_of(hold.token) {
            Some(0) | None => OwnerFence::New,
            Some(fence) => OwnerFence::Kept(fence),
        },
        _ => OwnerFence::None,
    }
}
