//! An operation that is under way, and the swap that it asks for.

use std::sync::Arc;

use super::codec::{Cell, Change, owners};
use super::driver::Done;
use super::guesses::Guess;
use super::{OwnerFence, Swap};
use crate::base::clock::ServerTime;
use crate::base::token::{Address, Token};
use crate::protocol::{self, Around, End, News, Operation as Step, Phase, Push, Reply, Way, step};

/// The most waiters in the queue of a key. More of them ask again.
const MOST_WAITERS: usize = 256;

/// An operation that is under way.
pub(super) struct Work {
    pub(super) guess: Guess,
    /// The clock of the store when it had that; `None`: it may have something else.
    pub(super) fact: Option<ServerTime>,
    /// The addresses of managers that do not listen.
    pub(super) deaf: Vec<Address>,
    pub(super) step: Step,
    /// The owner that gets this fencing token by the step.
    pub(super) raised: Option<(Token, u64)>,
}

impl Work {
    /// Runs the step on what is believed. Returns its reply, the cell behind it unless nothing is to be written, and its
    /// messages.
    pub(super) fn run(&self, now: ServerTime) -> (Reply, Option<Cell>, Vec<Push>) {
        let before = &self.guess.cell;
        let mut document = before.document.clone();
        let listens = |address| !self.deaf.contains(&address);
        // The number of the write takes the place of the mark.
        let mut around = Around::new(now, 0, &listens);
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
        let mut after = before.followed_by(document, swapped);
        let raised = self.raised.is_some_and(|raised| after.raise(raised));
        let after = (changes || raised).then_some(after);
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

    pub(super) fn acquires(&self) -> bool {
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

    pub(super) fn swap(
        &self,
        key: &Arc<str>,
        after: &Cell,
        pushes: Vec<Push>,
        now: ServerTime,
    ) -> Swap {
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

    pub(super) fn done(self, reply: Reply) -> Done {
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
        seen: guess.seen,
        bytes: encoded.bytes.into(),
        ends: encoded.ends,
        lasts: encoded.lasts,
        now: change.now,
        until: ServerTime(until),
        fence: owner_fence(after),
        ends_a_hold: guess.seen.revision == 0 || !owners(&guess.cell.document).all(stays),
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
