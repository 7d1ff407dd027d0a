//! What the tasks of a process do: they take locks by the public API, and tell the ledger what they see.

mod acquire;
mod cooldown;
mod crowd;
mod downgrade;
mod every;
mod foreign;
mod forget;
mod inspect;
mod keep;
mod lead;
mod namespaces;
mod neglect;
mod nest;
mod operate;
mod pass_on;
mod ping;
mod records;
mod rest;
mod run;
mod several;
mod share;
mod watched;

use std::future::IntoFuture;
use std::time::Duration;

use lock_core::machine::{sleep, timeout};
use lock_core::{Error, ErrorKind, Interop, LockGuard, LockHandle, LockManager, LockRequest, Wait};

use self::rest::{Rest, resting};
use self::watched::looks;
use crate::ledger::{Answer, Owning, ledger};
use crate::plan::{Plan, Topology, Verb, key_name};
use crate::rng::Rng;
use crate::world::{MICRO, MILLI, sim};

/// The time between two looks of an owner at its lock.
const LOOK: u64 = 5 * MILLI;

/// The time after which a caller gives a release up.
const SOON: Duration = Duration::from_millis(3);

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
            let verbs = match self.plan.habits.reads_only == Some(self.process) {
                true => vec![Verb::Read],
                false => self.plan.verbs.clone(),
            };
            match self.rng.pick(&verbs) {
                Verb::Acquire => self.acquire().await,
                Verb::Ping => self.ping().await,
                Verb::Forget => self.forget().await,
                Verb::Foreign => self.foreign().await,
                Verb::Run => self.run().await,
                Verb::Keep => self.keep().await,
                Verb::Neglect => self.neglect().await,
                Verb::Lead => self.lead().await,
                Verb::Every => self.every().await,
                Verb::Records => self.records().await,
                Verb::Cooldown => self.cooldown().await,
                Verb::Several => self.several().await,
                Verb::Read => self.read().await,
                Verb::Permits => self.permit().await,
                Verb::Downgrade => self.downgrade().await,
                Verb::Operate => self.operate().await,
                Verb::PassOn => self.pass_on().await,
                Verb::Crowd => self.crowd().await,
            }
        }
    }

    fn pause(&mut self) -> u64 {
        if self.plan.bursts {
            let beat = 250 * MILLI;
            return beat - sim().now() % beat;
        }
        let longest = match self.plan.interop {
            true => 1,
            false => self.rng.pick(&self.plan.habits.pauses),
        };
        MICRO + self.rng.below(longest * MILLI)
    }

    fn draw_key(&mut self) -> usize {
        if self.plan.keys == 5 && self.rng.percent(50) {
            // Two names that differ by braces.
            self.rng.pick(&[0, 4])
        } else if self.plan.bursts && self.rng.percent(80) {
            self.task % self.plan.keys
        } else {
            self.rng.index(self.plan.keys)
        }
    }

    /// Acquires a lock, and tells the ledger the answer. Returns the number of the call and the guard if it is granted.
    async fn ask(
        &mut self,
        request: LockRequest,
        draw: &Draw,
        keys: Vec<usize>,
        owning: Owning,
    ) -> Option<(usize, LockGuard)> {
        let call = self.asks(draw, keys, owning);
        let scripts = sim().look(|state| ledger(|it| it.scripts_before(&self.plan, state, call)));
        // A lock may be watched for it before it is answered.
        ledger(|it| it.calls[call].watched = draw.watched);
        if let Some(Rest { after, lasts }) = draw.rests {
            ledger(|it| it.calls[call].rests = Some(sim().now() + after + lasts));
        }
        let request = request
            .ttl(Duration::from_nanos(draw.ttl))
            .wait(waiting(draw.wait));
        let request = match self.plan.interop {
            true => request.interop(Interop::On),
            false => request,
        };
        let cancel = draw.cancel.map_or(Duration::MAX, Duration::from_nanos);
        let acquire = match draw.awaits {
            true => request.into_future(),
            false => request.acquire(),
        };
        let acquiring = resting(acquire, draw.rests);
        let (answer, guard) = match timeout(cancel, acquiring).await {
            Err(_) => (Answer::Cancelled, None),
            Ok(Err(error)) => {
                ledger(|it| it.refused(call, &error));
                ledger(|it| it.calls[call].is_full = error.is_full());
                (answer_of(&error), None)
            }
            Ok(Ok(guard)) => {
                ledger(|it| it.calls[call].token = Some(guard.fencing_token().into()));
                (Answer::Granted, Some(guard))
            }
        };
        ledger(|it| it.answered(call, answer));
        if let Some(scripts) = scripts {
            sim().look(|state| ledger(|it| it.check_scripts(state, call, scripts)));
        }
        guard.map(|guard| (call, guard))
    }

    /// Looks at an owned lock until the time of the hold is over, or until it is lost. Returns whether it is still valid.
    async fn hold(&mut self, call: usize, lock: &LockHandle, hold: u64) -> bool {
        look_for(&self.plan, call, lock, hold).await
    }
}

async fn look_for(plan: &Plan, call: usize, lock: &LockHandle, hold: u64) -> bool {
    let begun = sim().now();
    loop {
        let now = sim().now();
        if !looks(plan, call, lock) {
            ledger(|it| {
                it.calls[call].answer = Answer::Lost;
                it.calls[call].lost = Some(now);
            });
            return false;
        }
        if now >= begun + hold {
            return true;
        }
        sleep(Duration::from_nanos(LOOK)).await;
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
    rests: Option<Rest>,
    watched: bool,
    end: End,
    /// The request itself is awaited.
    awaits: bool,
}

/// How an owner ends a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Release,
    /// The caller gives the release up soon.
    GivenUp,
    InBackground,
    Drop,
    /// The owner waits so long for the release, which goes on in the background.
    Within(u64),
}

impl Worker {
    fn draw(&mut self) -> Draw {
        let key = self.draw_key();
        let rng = &mut self.rng;
        let cancels = rng.percent(self.plan.cancels);
        let soon = rng.pick(&[3 * MILLI, 400 * MILLI]);
        let rests = rng.percent(self.plan.rests).then(|| Rest {
            after: rng.below(20 * MILLI),
            lasts: rng.pick(&[100, 1_000, 4_500]) * MILLI,
        });
        Draw {
            key,
            ttl: rng.pick(&self.plan.ttls) * MILLI,
            wait: match self.plan.interop {
                // The key is contended all the time.
                true => None,
                false => rng.pick(&self.plan.habits.waits).map(|wait| wait * MILLI),
            },
            hold: match self.plan.topology {
                // Long enough for the owner to notice that a failover has forgotten its lock.
                Topology::Sentinel => rng.pick(&[0, 5, 40, 40, 200, 200, 700, 4_000]) * MILLI,
                _ => rng.pick(&self.plan.habits.holds) * MILLI,
            },
            cancel: cancels.then(|| rng.below(soon)),
            rests,
            watched: false,
            end: rng.pick(&[
                End::Release,
                End::Release,
                match self.plan.has_shares() {
                    true => End::Release,
                    false => End::GivenUp,
                },
                End::InBackground,
                End::Drop,
            ]),
            awaits: rng.percent(30),
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
    let remaining = guard.handle().remaining().as_nanos() as u64;
    ledger(|it| {
        it.calls[call].left = Some(sim().now());
        it.calls[call].left_with = remaining;
    });
    let note = |released: Result<(), Error>| {
        ledger(|it| {
            let call = &mut it.calls[call];
            call.ended = Some(sim().now());
            match released {
                Ok(()) => call.released = call.ended,
                Err(error) => {
                    call.answer = Answer::NotReleased(format!("{:?} {error}", error.kind()));
                }
            }
        });
    };
    match end {
        End::Release => note(guard.release().await),
        End::GivenUp => {
            let released = timeout(SOON, guard.release()).await;
            released.into_iter().for_each(note);
        }
        End::Within(time) => {
            let released = guard.release_within(Duration::from_nanos(time)).await;
            released.into_iter().for_each(note);
        }
        End::InBackground => guard.release_in_background(),
        End::Drop => drop(guard),
    }
}

/// The name of a key in calls. On the servers it has the namespace before it.
fn name(key: usize) -> String {
    key_name(key)
}
