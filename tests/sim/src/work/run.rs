//! Bodies under a lock.

use std::sync::Arc;
use std::time::Duration;

use lock_core::machine::{sleep, timeout};
use lock_core::{LockHandle, LockRequest, OnLost, ReleaseMode};

use super::watched::{Terms, Watched, Work};
use super::{Draw, LOOK, Worker, answer_of, name, waiting};
use crate::ledger::{Answer, Asks, Owning, ledger};
use crate::rng::Rng;
use crate::world::{MILLI, sim};

/// The work of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// It is polled every few milliseconds.
    Looks,
    /// It is polled at its begin and at its end, unless its lock is lost.
    Sleeps,
    Keeps,
    Nests,
}

impl Worker {
    pub(super) async fn run(&mut self) {
        let draw = self.draw();
        let rng = &mut self.rng;
        let on_lost = rng.pick(&[OnLost::Cancel, OnLost::Cancel, OnLost::Ignore]);
        let release = rng.pick(&[ReleaseMode::Await, ReleaseMode::Background]);
        let max_hold = rng
            .percent(30)
            .then(|| rng.pick(&[20, 100, 400, 1_500]) * MILLI);
        let inside = rng.pick(&[
            Inside::Looks,
            Inside::Looks,
            Inside::Sleeps,
            Inside::Keeps,
            Inside::Nests,
        ]);
        let call = self.asks(&draw, vec![draw.key], Owning::Alone);
        let terms = Terms {
            ignores_loss: on_lost == OnLost::Ignore,
            max_hold,
            ..self.terms(call)
        };
        let part = self.part(terms, draw.key, draw.ttl);
        let request = self.request(&draw).on_lost(on_lost).release(release);
        let request = match max_hold {
            Some(longest) => request.max_hold(Duration::from_nanos(longest)),
            None => request,
        };
        let is_released = run_under(request, part, inside, &draw).await;
        let awaited = is_released && release == ReleaseMode::Await;
        ledger(|it| it.calls[call].released = awaited.then(|| sim().now()));
    }

    pub(super) fn request(&self, draw: &Draw) -> LockRequest {
        let request = self.locks.lock(name(draw.key));
        let ttl = Duration::from_nanos(draw.ttl);
        request.ttl(ttl).wait(waiting(draw.wait))
    }

    pub(super) fn asks(&self, draw: &Draw, keys: Vec<usize>, owning: Owning) -> usize {
        let asks = Asks {
            process: self.process,
            task: self.task,
            keys,
            owning,
            ttl: draw.ttl,
            wait: draw.wait,
        };
        ledger(|it| it.asks(asks))
    }

    /// Notes a lock that the library has asked for by itself, at its grant. Returns the number of the call.
    pub(super) fn is_granted(&self, key: usize, ttl: u64) -> usize {
        ledger(|it| it.grants(self.process, self.task, key, ttl))
    }

    /// The terms of a body that ends with its lock.
    pub(super) fn terms(&self, call: usize) -> Terms {
        Terms {
            plan: Arc::new(self.plan.clone()),
            locks: self.locks.clone(),
            process: self.process,
            call,
            ignores_loss: false,
            max_hold: None,
            asks_for_time: false,
            ends_with_drain: false,
            is_nested: false,
        }
    }

    pub(super) fn part(&mut self, terms: Terms, key: usize, ttl: u64) -> Part {
        Part {
            terms,
            task: self.task,
            key,
            ttl,
            rng: self.rng.split(),
        }
    }
}

/// Runs a body under the lock of a request. Returns whether it has run to its end, and its lock was given back.
pub(super) async fn run_under(
    request: LockRequest,
    part: Part,
    inside: Inside,
    draw: &Draw,
) -> bool {
    let (call, hold) = (part.terms.call, draw.hold);
    let run = request.run_with(move |lock| {
        let token = lock.fencing_token().into();
        ledger(|it| it.calls[call].token = Some(token));
        ledger(|it| it.answered(call, Answer::Granted));
        part.body(lock, inside, hold)
    });
    let cancel = draw.cancel.map_or(Duration::MAX, Duration::from_nanos);
    let answer = match timeout(cancel, run).await {
        Err(_) => Answer::Cancelled,
        Ok(Err(error)) => answer_of(&error),
        Ok(Ok(())) => return true,
    };
    ledger(|it| it.never_began(call, answer));
    false
}

/// What a body needs of its worker.
pub(super) struct Part {
    pub terms: Terms,
    pub task: usize,
    pub key: usize,
    pub ttl: u64,
    pub rng: Rng,
}

impl Part {
    pub(super) fn body(mut self, lock: LockHandle, inside: Inside, hold: u64) -> Watched {
        let terms = self.terms.clone();
        let handle = lock.clone();
        let work: Work = match inside {
            Inside::Looks => Box::pin(awake(hold)),
            Inside::Sleeps => Box::pin(sleep(Duration::from_nanos(hold))),
            Inside::Keeps => {
                let longest = self.rng.pick(&[100, 600, 2_000]) * MILLI;
                let kept = self.rng.below(longest);
                Box::pin(async move {
                    if let Ok(kept_lock) = handle.keep() {
                        self.works_on(kept_lock, kept);
                    }
                    awake(hold).await;
                })
            }
            Inside::Nests => Box::pin(self.nests(handle, hold)),
        };
        Watched::new(terms, lock, work)
    }
}

/// Is polled again and again for so long.
pub(super) async fn awake(span: u64) {
    // Seldom within a long span, because each look costs a step.
    let pause = LOOK.max(span / 80);
    for _ in 0..span / pause {
        sleep(Duration::from_nanos(pause)).await;
    }
}
