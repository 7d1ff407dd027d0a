//! A lock that one owner has alone.

use std::time::Duration;

use lock_core::machine::sleep;
use lock_core::{LockGuard, Renew, Watch};

use super::{Draw, End, Worker, end, name};
use crate::ledger::{Blocked, Owning, ledger};
use crate::plan::{Topology, Weather, lock_name};
use crate::world::{MILLI, sim};

/// Longer than a process takes to release a lock whose runtime stands still.
const BLOCKED: u64 = 700 * MILLI;

impl Worker {
    pub(super) async fn acquire(&mut self) {
        let draw = self.draw();
        self.acquires(draw).await;
    }

    pub(super) async fn acquires(&mut self, mut draw: Draw) {
        let renews = !(self.plan.habits.unrenewed && self.rng.percent(40));
        let watched = renews && self.rng.percent(20) && self.plan.topology != Topology::Postgres;
        let blocks = self.rng.percent(self.plan.habits.blocks);
        let linger = self.rng.pick(&self.plan.habits.lingers) * MILLI;
        let mut request = self.locks.lock(name(draw.key));
        if !renews {
            request = request.renew(Renew::Off);
        }
        if watched {
            request = request.watch(Watch::AtOnce);
            draw.watched = true;
        }
        let keys = vec![draw.key];
        let Some((call, guard)) = self.ask(request, &draw, keys, Owning::Alone).await else {
            return;
        };
        ledger(|it| it.calls[call].renews = renews);
        let is_valid = self.hold(call, &guard.handle(), draw.hold).await;
        if !is_valid {
            sleep(Duration::from_nanos(linger)).await;
        }
        match blocks && is_valid && draw.end != End::Release {
            true => self.block_behind(call, guard, &draw).await,
            false => end(call, guard, draw.end).await,
        }
    }

    /// Ends a lock in the background, and blocks the runtime at once: the keeper releases it.
    async fn block_behind(&self, call: usize, guard: LockGuard, draw: &Draw) {
        let key = lock_name(draw.key);
        let value = || {
            sim().look(|state| {
                let texts = state.hosts[0].texts.get(key.as_bytes());
                texts.and_then(|texts| texts.last()).cloned()
            })
        };
        let before = value();
        // A task that waits gets the lock itself.
        let is_alone = ledger(|it| {
            let mut waiting = it.calls.iter().filter(|it| it.answered.is_none());
            waiting.all(|it| it.process != self.process || it.keys != [draw.key])
        });
        end(call, guard, draw.end).await;
        let from = sim().now();
        ledger(|it| {
            it.blocked.push(Blocked {
                process: self.process,
                from,
                until: from + BLOCKED,
            });
        });
        sim().change(|state| state.block(self.process, BLOCKED));
        // The step that runs goes on where the process stops inside of it, for longer than a sleep.
        while sim().now() < from + BLOCKED {
            sleep(Duration::from_nanos(MILLI)).await;
        }
        let is_there = sim().look(|state| {
            let entry = state.hosts[0].server.entry(key.as_bytes());
            let millis = state.server_time(0) / 1_000;
            entry.is_some_and(|entry| !entry.is_over(millis))
        });
        // A copy of the question takes the key once more for the same lease.
        let may_come_back = self.plan.weather == Weather::Repeats;
        if is_there && is_alone && !may_come_back && before == value() {
            ledger(|it| {
                let text = it.calls[call].to_string();
                it.violates("a release waits for a runtime that is blocked", text);
            });
        }
    }
}
