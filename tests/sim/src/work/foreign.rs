//! A client of another library: `SET key value NX PX ttl`, and a deletion of its own value.

use std::time::Duration;

use lock_core::machine::sleep;

use super::{LOOK, Worker};
use crate::ledger::{Foreign, ledger};
use crate::plan::{Topology, lock_name};
use crate::world::{Fault, MILLI, sim};

/// The time between two tries. It is shorter than a gap.
const POLL: u64 = 20 * MILLI;
/// A gap is left about once a second, by the owner that has the key then.
const STARVES: u64 = 3_500 * MILLI;

/// A foreign client's lock.
struct Lock {
    name: String,
    value: String,
    ttl: u64,
    servers: usize,
}

impl Worker {
    /// The first task is a foreign client at times. The others take locks of the kit.
    pub(super) async fn foreign(&mut self) {
        if self.task > 0 || self.process > 0 {
            return self.acquire().await;
        }
        let draw = self.draw();
        let hold = self.rng.pick(&[40, 200, 1_500, 2_500]) * MILLI;
        let lock = Lock {
            name: lock_name(draw.key),
            // Some libraries write no name.
            value: match self.rng.percent(20) {
                true => String::new(),
                false => format!("foreign {}", self.rng.next()),
            },
            ttl: self.rng.pick(&[300, 1_000, 3_000]),
            servers: self.plan.servers,
        };
        let asked = sim().now();
        while !lock.takes() {
            let now = sim().now();
            if self.should_have_a_gap() && now > asked + STARVES {
                return ledger(|it| it.starves(draw.key, asked, now));
            }
            if now > asked + 2 * STARVES || now > self.plan.work_ends {
                return;
            }
            sleep(Duration::from_nanos(POLL)).await;
        }
        self.hold_foreign(draw.key, &lock, hold).await;
        lock.give_back();
    }

    fn should_have_a_gap(&self) -> bool {
        let plan = &self.plan;
        plan.interop && plan.faults.is_empty() && !plan.stops_inside
    }

    async fn hold_foreign(&mut self, key: usize, lock: &Lock, hold: u64) {
        let from = sim().now();
        let ends = from + lock.ttl * MILLI;
        let place = ledger(|it| {
            it.foreign.push(Foreign {
                key,
                from,
                until: from,
            });
            it.foreign.len() - 1
        });
        let is_of_clients = |fault: &Fault| {
            fault.process().is_some()
                || matches!(
                    fault,
                    Fault::EndConnections { .. } | Fault::ForgetScripts { .. }
                )
        };
        let may_end =
            self.plan.topology != Topology::One || self.plan.has(|fault| !is_of_clients(fault));
        while sim().now() < from + hold {
            sleep(Duration::from_nanos(LOOK)).await;
            let now = sim().now();
            if lock.stands() {
                ledger(|it| it.foreign[place].until = now);
                continue;
            }
            if now + MILLI < ends && !may_end {
                let text = format!("{} at {now}, taken at {from}", lock.name);
                ledger(|it| it.violates("the lock of another library is taken away", text));
            }
            return;
        }
    }
}

impl Lock {
    /// Tries to take a majority, and leaves nothing if it gets less.
    fn takes(&self) -> bool {
        let ttl = self.ttl.to_string();
        let (name, value) = (self.name.as_bytes(), self.value.as_bytes());
        let words: [&[u8]; 6] = [b"SET", name, value, b"NX", b"PX", ttl.as_bytes()];
        let taken = self.count(|server| {
            let answer = sim().change(|state| state.stranger_runs(server, &words));
            answer.is_some_and(|answer| answer == b"+OK\r\n")
        });
        let enough = taken > self.servers / 2;
        if !enough {
            self.give_back();
        }
        enough
    }

    fn stands(&self) -> bool {
        self.count(|server| self.is_at(server)) > self.servers / 2
    }

    fn is_at(&self, server: usize) -> bool {
        let words: [&[u8]; 2] = [b"GET", self.name.as_bytes()];
        let value = format!("${}\r\n{}\r\n", self.value.len(), self.value);
        let answer = sim().change(|state| state.stranger_runs(server, &words));
        answer.is_some_and(|answer| answer == value.as_bytes())
    }

    /// Deletes the key where it still is its own.
    fn give_back(&self) {
        for server in (0..self.servers).filter(|server| self.is_at(*server)) {
            let words: [&[u8]; 2] = [b"DEL", self.name.as_bytes()];
            sim().change(|state| drop(state.stranger_runs(server, &words)));
        }
    }

    fn count(&self, has: impl Fn(usize) -> bool) -> usize {
        (0..self.servers).filter(|server| has(*server)).count()
    }
}
