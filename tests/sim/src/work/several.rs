//! A lock of several keys, beside the other locks of its process.

use std::time::Duration;

use super::cooldown::note_cooldown;
use super::{Draw, End, Worker, end, name};
use crate::ledger::{Owning, ledger};
use crate::plan::{MOST_KEYS, Topology};
use crate::world::{MILLI, sim};

/// The most keys of a lock here.
const MOST: u64 = 4;

impl Worker {
    pub(super) async fn several(&mut self) {
        let named = self.draw_keys();
        if self.rng.percent(40) {
            let key = self.rng.pick(&named);
            self.one_before(key).await;
        }
        let mut draw = self.draw();
        draw.hold = self.rng.pick(&[0, 5, 40, 200, 3_000]) * MILLI;
        let cools = self.rng.percent(10);
        let span = if cools { 200 * MILLI } else { 0 };
        let request = self.locks.lock_all(named.iter().map(|key| name(*key)));
        let request = request.cooldown(Duration::from_nanos(span));
        let mut keys = named;
        keys.sort_unstable();
        keys.dedup();
        let stops = self.stops_inside();
        let Some((call, guard)) = self.ask(request, &draw, keys, Owning::Alone).await else {
            return;
        };
        let lock = guard.handle();
        let is_valid = lock.is_valid();
        let stood_still = stops != self.stops_inside();
        ledger(|it| it.check_first_look(call, is_valid, stood_still));
        self.hold(call, &lock, draw.hold).await;
        if cools && draw.end != End::Drop {
            note_cooldown(call, &lock, span);
        }
        end(call, guard, draw.end).await;
    }

    /// How often the process has been stopped inside a step.
    fn stops_inside(&self) -> u64 {
        sim().look(|state| state.processes[self.process].stops_inside)
    }

    /// Some keys in any order, which may name one twice.
    fn draw_keys(&mut self) -> Vec<usize> {
        let count = self.rng.between(1, MOST);
        if self.plan.topology == Topology::Cluster && self.plan.keys == MOST_KEYS {
            // The last two are in one slot.
            if self.rng.percent(50) {
                return vec![MOST_KEYS - 1, MOST_KEYS - 2];
            }
        }
        (0..count).map(|_| self.rng.index(self.plan.keys)).collect()
    }

    /// Has one of the keys alone or as a reader, and drops it right before the lock of several keys.
    async fn one_before(&mut self, key: usize) {
        let draw = Draw {
            key,
            hold: self.rng.pick(&[0, 5]) * MILLI,
            end: End::Drop,
            ..self.draw()
        };
        let request = self.locks.lock(name(key));
        // Shares of a slot that moves rely on clocks that agree.
        let reads = self.rng.percent(60) && self.plan.clocks.is_empty();
        let (request, owning) = match reads {
            true => (request.read(), Owning::Share(u32::MAX)),
            false => (request, Owning::Alone),
        };
        if let Some((call, guard)) = self.ask(request, &draw, vec![key], owning).await {
            self.hold(call, &guard.handle(), draw.hold).await;
            end(call, guard, draw.end).await;
        }
    }
}
