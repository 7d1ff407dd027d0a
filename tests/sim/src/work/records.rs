//! A lock whose owner leaves a record for those who come later.

use std::time::Duration;

use lock_core::machine::{self as kit, sleep, timeout};
use lock_core::middleware::{Forgotten, RecordOutcome};
use lock_core::{LockHandle, LockRequest, Renew};

use super::{End, LOOK, Worker, end, name};
use crate::ledger::{Answer, Owning, Record, ledger, servers_with_token};
use crate::plan::{Plan, Topology};
use crate::world::{MILLI, SECOND, sim};

/// No answer to a record comes so long after the end of the work.
const GIVEN_UP: u64 = 7 * SECOND;

/// How a lock may end by itself, as its request says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    None,
    MaxHold,
    NoRenewal,
}

impl Worker {
    pub(super) async fn records(&mut self) {
        let mut draw = self.draw();
        if self.rng.percent(25) {
            return self.forget_kept(draw.key).await;
        }
        if self.rng.percent(30) {
            draw.hold = 2_500 * MILLI;
        }
        if self.rng.percent(20) {
            draw.end = End::Within(self.rng.pick(&[1, 10, 100]) * MILLI);
        }
        let limit = self
            .rng
            .pick(&[Limit::None, Limit::None, Limit::MaxHold, Limit::NoRenewal]);
        let request = limit.of(self.locks.lock(name(draw.key)));
        let owning = Owning::Alone;
        let Some((call, guard)) = self.ask(request, &draw, vec![draw.key], owning).await else {
            return;
        };
        ledger(|it| it.calls[call].renews = limit != Limit::NoRenewal);
        let lock = guard.handle();
        if self.rng.percent(30) {
            self.remember(call, &lock, "replaced", 300 * MILLI);
        }
        let held = self.hold(call, &lock, draw.hold).await;
        if held && self.rng.percent(20) {
            self.forget_kept(draw.key).await;
        }
        if !held && self.rng.percent(50) {
            // The work ends some time after the loss.
            let late = self.rng.below(2 * SECOND);
            sleep(Duration::from_nanos(late)).await;
        }
        // On a quorum a record lasts no longer than a lock may.
        let longest = match self.plan.topology {
            Topology::Redlock => self.plan.ttls.iter().max().copied(),
            _ => None,
        };
        let lifetime = self.rng.pick(&[50, 300, 2_000, 60_000]);
        let lifetime = lifetime.min(longest.unwrap_or(u64::MAX)) * MILLI;
        if self.rng.percent(10) {
            lock.forget_record();
            end(call, guard, End::Release).await;
        } else {
            let bytes = self.remember(call, &lock, "kept", lifetime);
            let record = self.record(call, &lock, draw.key, bytes, lifetime);
            let number = ledger(|it| it.leaves_record(record));
            end(call, guard, draw.end).await;
            kit::spawn(watch(self.plan.clone(), number, lock));
        }
        if limit != Limit::None {
            // The limit may come while the lock is released.
            ledger(|it| {
                let answer = &mut it.calls[call].answer;
                if !held || matches!(answer, Answer::NotReleased(_)) {
                    *answer = Answer::RanOut;
                }
            });
        }
    }

    /// Gives the lock a record, which replaces one from before. Returns the record.
    fn remember(&mut self, call: usize, lock: &LockHandle, word: &str, lifetime: u64) -> Vec<u8> {
        let padding = " ".repeat(self.rng.pick(&[0, 10, 300]));
        let bytes = format!("{padding}{word} {call}.").into_bytes();
        let lifetime = Duration::from_nanos(lifetime);
        lock.remember(bytes.clone(), lifetime)
            .expect("the record is in bounds");
        bytes
    }

    /// The record of a lock that ends now.
    fn record(
        &self,
        call: usize,
        lock: &LockHandle,
        key: usize,
        bytes: Vec<u8>,
        lifetime: u64,
    ) -> Record {
        let ended = sim().now();
        let lasts = look_at_last(call, lock);
        Record {
            call,
            key,
            bytes,
            lifetime,
            ended,
            lasts,
            on: sim().look(|state| servers_with_token(&self.plan, state, key)),
            outcome: None,
        }
    }

    /// Deletes the record or the cooldown of a key.
    pub(super) async fn forget_kept(&mut self, key: usize) {
        let number = ledger(|it| it.forgets(self.process, key));
        let cancels = self.rng.percent(self.plan.cancels / 3);
        let after = Duration::from_nanos(self.rng.below(3 * MILLI));
        let cancel = if cancels { after } else { Duration::MAX };
        let answer = timeout(cancel, self.locks.forget(name(key))).await;
        let answer = answer.ok().and_then(Result::ok);
        ledger(|it| it.forgot(number, answer));
        // What a fault holds back, or what is sent because a server fails, may arrive later than the answer.
        let is_calm = self.plan.faults.is_empty();
        if is_calm && answer.is_some_and(|it| it != Forgotten::Held) {
            kit::spawn(look_behind(self.plan.clone(), key));
        }
    }
}

impl Limit {
    fn of(self, request: LockRequest) -> LockRequest {
        match self {
            Self::None => request,
            Self::MaxHold => request.max_hold(Duration::from_millis(40)),
            Self::NoRenewal => request.renew(Renew::Off),
        }
    }
}

/// Looks at a lock that ends now. Returns until when it would last.
pub(super) fn look_at_last(call: usize, lock: &LockHandle) -> Option<u64> {
    let now = sim().now();
    let remaining = lock.remaining().as_nanos() as u64;
    lock.is_valid().then(|| {
        ledger(|it| it.claims(call, u64::from(lock.fencing_token()), now));
        now + remaining / 100 * 99
    })
}

/// Waits for the store's answer to a record.
async fn watch(plan: Plan, number: usize, lock: LockHandle) {
    let mut pause = LOOK / 2;
    while sim().now() < plan.work_ends + GIVEN_UP {
        let outcome = lock.record_outcome();
        if let Some(outcome) = outcome.filter(|it| *it != RecordOutcome::Background) {
            sim().look(|state| ledger(|it| it.record_is(&plan, state, number, outcome)));
            return;
        }
        sleep(Duration::from_nanos(pause)).await;
        pause = (pause * 2).min(100 * MILLI);
    }
}

/// Looks at the servers for a while when a record was deleted. What comes late is there by then, and its lifetime is not over.
async fn look_behind(plan: Plan, key: usize) {
    for _ in 0..20 {
        sleep(Duration::from_nanos(50 * MILLI)).await;
        sim().look(|state| ledger(|it| it.check_forgotten(&plan, state, key)));
    }
}
