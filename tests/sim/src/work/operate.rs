//! An operator frees locks from the holders that it has seen.

use std::time::Duration;

use lock_core::machine::{sleep, timeout};
use lock_core::operator::{Forced, Holder};

use super::run::{Inside, run_under};
use super::{Worker, end, name, waiting};
use crate::ledger::{Ordered, Owning, ledger};
use crate::plan::Topology;
use crate::world::{MILLI, sim};

pub(super) const OPERATOR: &str = "ops@example";

impl Worker {
    pub(super) async fn operate(&mut self) {
        match self.rng.below(8) {
            0 if self.may_list_elsewhere() && self.rng.percent(30) => {
                self.list_elsewhere().await;
            }
            0 => self.list().await,
            1 | 2 => self.hold_for_long().await,
            _ => self.look_and_free().await,
        }
    }

    /// Returns whether there is one server, and its other namespace is drained before the process ends.
    fn may_list_elsewhere(&self) -> bool {
        self.plan.topology == Topology::One && !self.plan.ends_early(self.process)
    }

    async fn look_and_free(&mut self) {
        let key = self.draw_key();
        let looked = sim().now();
        let Some(holders) = self.inspect(key).await else {
            return;
        };
        if holders.is_empty() || self.rng.percent(40) {
            return;
        }
        let holder = &holders[self.rng.index(holders.len())];
        let pause = self.rng.pick(&[0, 0, 2, 30, 700]) * MILLI;
        if pause > 0 {
            sleep(Duration::from_nanos(self.rng.below(pause))).await;
        }
        self.free(key, holder, looked).await;
    }

    async fn free(&mut self, key: usize, holder: &Holder, looked: u64) {
        let token = holder.fencing_token().map(u64::from);
        let cancels = self.rng.percent(self.plan.cancels / 2);
        let cancel = match cancels {
            true => Duration::from_nanos(self.rng.below(20 * MILLI)),
            false => Duration::MAX,
        };
        let force = self.locks.operator(OPERATOR).force(holder);
        let force = force.because("it hangs");
        let order =
            sim().look(|state| ledger(|it| it.orders(state, self.process, key, token, looked)));
        let result = match timeout(cancel, async { force.await }).await {
            Ok(Ok(Forced::Freed)) => Ordered::Freed,
            Ok(Ok(Forced::Told)) => Ordered::Told,
            Ok(Ok(Forced::Changed)) => Ordered::Changed,
            Ok(Ok(other)) => panic!("{other:?} is new"),
            Ok(Err(error)) => {
                self.is_refused(&error);
                Ordered::Unknown
            }
            Err(_) => Ordered::Unknown,
        };
        sim().look(|state| ledger(|it| it.is_ordered(&self.plan, state, order, result)));
    }

    /// Holds one key or two for longer than other work does, so that there is something to see. A body is not looked at
    /// meanwhile.
    async fn hold_for_long(&mut self) {
        let mut draw = self.draw();
        draw.hold = self.rng.pick(&[800, 2_000, 4_000]) * MILLI;
        draw.wait = self.rng.pick(&[Some(0), Some(300 * MILLI)]);
        draw.cancel = None;
        let mut keys = vec![draw.key];
        if self.plan.keys > 1 && self.rng.percent(40) {
            let step = 1 + self.rng.index(self.plan.keys - 1);
            keys.push((draw.key + step) % self.plan.keys);
            keys.sort_unstable();
        }
        let request = match keys.as_slice() {
            [key] => self.locks.lock(name(*key)),
            keys => self.locks.lock_all(keys.iter().map(|key| name(*key))),
        };
        if draw.awaits {
            let call = self.asks(&draw, keys, Owning::Alone);
            let part = self.part(self.terms(call), draw.key, draw.ttl);
            let request = request.ttl(Duration::from_nanos(draw.ttl));
            let request = request.wait(waiting(draw.wait));
            run_under(request, part, Inside::Sleeps, &draw).await;
        } else if let Some((call, guard)) = self.ask(request, &draw, keys, Owning::Alone).await {
            self.hold(call, &guard.handle(), draw.hold).await;
            end(call, guard, draw.end).await;
        }
    }
}
