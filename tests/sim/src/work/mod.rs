//! What the tasks of a process do: they take locks by the public API, and tell the ledger what they see.

mod acquire;

use std::time::Duration;

use lock_core::machine::sleep;
use lock_core::{Error, ErrorKind, LockGuard, LockHandle, LockManager, LockRequest, Wait};

use crate::ledger::{Answer, Owning, ledger};
use crate::plan::{Plan, Verb};
use crate::rng::Rng;
use crate::world::{MILLI, sim};

/// The time between two looks of an owner at its lock.
const LOOK: u64 = 5 * MILLI;

/// A task of a process.
pub struct Worker {
    pub plan: Plan,
    pub process: usize,
    pub task: usize,
    pub locks: LockManager,
    pub rng: Rng,
}

impl Worker {
    /// Makes calls until the time for work is over.
    pub async fn work(mut self) {
        loop {
            let pause = self.pause();
            sleep(Duration::from_nanos(pause)).await;
            if sim().now() >= self.plan.work_ends {
                return;
            }
            let verbs = self.plan.verbs.clone();
            match self.rng.pick(&verbs) {
                Verb::Acquire => self.acquire().await,
            }
        }
    }

    fn pause(&mut self) -> u64 {
        if self.plan.bursts {
            let beat = 250 * MILLI;
            return beat - sim().now() % beat;
        }
        let longest = self.rng.pick(&[1, 20, 300]);
        self.rng.below(longest * MILLI)
    }

    fn draw_key(&mut self) -> usize {
        if self.plan.bursts && self.rng.percent(80) {
            self.task % self.plan.keys
        } else {
            self.rng.index(self.plan.keys)
        }
    }

    /// Looks at an owned lock until the time of the hold is over. Returns whether it is still valid.
    async fn hold(
        &mut self,
        call: usize,
        key: usize,
        owning: Owning,
        lock: &LockHandle,
        hold: u64,
    ) -> bool {
        let token = u64::from(lock.fencing_token());
        let begun = sim().now();
        loop {
            // Before the lock is checked, so that it was valid at this time.
            let now = sim().now();
            if !lock.is_valid() {
                return false;
            }
            let remaining = lock.remaining().as_nanos() as u64;
            ledger(|it| it.claims(call, key, owning, token, now));
            sim().look(|state| {
                ledger(|it| it.check_deadline(&self.plan, state, call, owning, remaining));
            });
            if now >= begun + hold {
                return true;
            }
            sleep(Duration::from_nanos(LOOK)).await;
        }
    }
}

/// The parameters of a call, drawn from the seed of its task.
struct Draw {
    key: usize,
    ttl: u64,
    wait: Option<u64>,
    hold: u64,
    /// The call is dropped after this time.
    cancel: Option<u64>,
    end: End,
}

/// How an owner ends a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Release,
    InBackground,
    Drop,
}

impl Worker {
    fn draw(&mut self) -> Draw {
        let key = self.draw_key();
        let rng = &mut self.rng;
        let cancels = rng.percent(self.plan.cancels);
        let soon = rng.pick(&[3 * MILLI, 400 * MILLI]);
        Draw {
            key,
            ttl: rng.pick(&self.plan.ttls) * MILLI,
            wait: rng.pick(&[Some(0), Some(300 * MILLI), Some(1_500 * MILLI), None]),
            hold: rng.pick(&[0, 5, 40, 200, 700]) * MILLI,
            cancel: cancels.then(|| rng.below(soon)),
            end: rng.pick(&[End::Release, End::InBackground, End::Drop]),
        }
    }
}

fn waiting(wait: Option<u64>) -> Wait {
    match wait {
        Some(0) => Wait::None,
        Some(nanos) => Wait::For(Duration::from_nanos(nanos)),
        None => Wait::Forever,
    }
}

fn answer_of(error: &Error) -> Answer {
    match error.kind() {
        ErrorKind::Busy => Answer::Busy,
        kind => Answer::Refused(format!("{kind:?} {error}")),
    }
}

/// Ends a lock, and notes whether that was confirmed.
async fn end(call: usize, guard: LockGuard, end: End) {
    ledger(|it| it.calls[call].left = Some(sim().now()));
    match end {
        End::Release => match guard.release().await {
            Ok(()) => ledger(|it| it.calls[call].released = Some(sim().now())),
            Err(error) => ledger(|it| {
                it.calls[call].answer = Answer::NotReleased(format!("{:?} {error}", error.kind()));
            }),
        },
        End::InBackground => guard.release_in_background(),
        End::Drop => drop(guard),
    }
}

fn request(locks: &LockManager, draw: &Draw) -> LockRequest {
    let request = locks.lock(format!("k{}", draw.key));
    request
        .ttl(Duration::from_nanos(draw.ttl))
        .wait(waiting(draw.wait))
}
