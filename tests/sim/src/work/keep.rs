//! Work that keeps a lock beyond its guard or its body.

use std::time::Duration;

use lock_core::machine::{sleep, spawn};
use lock_core::{KeptLock, LockHandle};

use super::run::Part;
use super::watched::{Terms, is_lost, looks};
use super::{LOOK, Worker, end};
use crate::ledger::{Answer, Owning, ledger};
use crate::plan::lock_name;
use crate::server::{Bytes, Data};
use crate::world::{MILLI, State, sim};

impl Worker {
    pub(super) async fn keep(&mut self) {
        let draw = self.draw();
        let rng = &mut self.rng;
        let max_hold = rng.percent(30).then(|| rng.pick(&[30, 200, 800]) * MILLI);
        let spans: Vec<u64> = (0..rng.between(1, 2))
            .map(|_| rng.pick(&[20, 300, 2_000]) * MILLI)
            .collect();
        let request = self.request(&draw);
        let request = match max_hold {
            Some(longest) => request.max_hold(Duration::from_nanos(longest)),
            None => request,
        };
        let granted = self.ask(request, &draw, vec![draw.key], Owning::Alone);
        let Some((call, guard)) = granted.await else {
            return;
        };
        let handle = guard.handle();
        for span in spans {
            let terms = self.terms(call);
            let part = self.part(Terms { max_hold, ..terms }, draw.key, draw.ttl);
            if let Ok(kept) = handle.keep() {
                part.works_on(kept, span);
            }
        }
        self.hold(call, &handle, draw.hold).await;
        end(call, guard, draw.end).await;
        if max_hold.is_some_and(|longest| handle.held_for() >= Duration::from_nanos(longest)) {
            // Its end was its own wish.
            ledger(|it| it.calls[call].answer = Answer::Granted);
        }
    }
}

impl Part {
    /// Works in a task of its own until the span is over.
    pub(super) fn works_on(&self, kept: KeptLock, span: u64) {
        let kept = Kept::new(self.terms.clone(), self.key, kept);
        drop(spawn(kept.work(span)));
    }
}

/// Kept work.
struct Kept {
    number: usize,
    terms: Terms,
    key: Bytes,
    lock: KeptLock,
    /// The key at the server at the last look: its value, and when it ends in true time.
    taken: Option<(Bytes, u64)>,
}

impl Kept {
    fn new(terms: Terms, key: usize, lock: KeptLock) -> Self {
        Self {
            number: ledger(|it| it.keeps(terms.process, terms.call)),
            terms,
            key: lock_name(key).into_bytes(),
            lock,
            taken: None,
        }
    }

    async fn work(mut self, span: u64) {
        let until = sim().now() + span;
        while sim().now() < until {
            self.looks();
            sleep(Duration::from_nanos(LOOK)).await;
        }
        self.looks();
        // In one step with the end of the lock.
        let now = sim().look(|state| state.server_time(0));
        ledger(|it| it.kept_work[self.number].until = Some(now));
    }

    fn looks(&mut self) {
        let Terms { plan, call, .. } = &self.terms;
        let lock: &LockHandle = &self.lock;
        if looks(plan, *call, lock) {
            self.taken = sim().look(|state| taken(state, &self.key));
            return;
        }
        if !is_lost(lock) {
            self.violates("a lock is released under its kept work");
        }
        let Some((value, ends)) = self.taken.take() else {
            return;
        };
        let (now, next) = sim().look(|state| (state.now, taken(state, &self.key)));
        if next.as_ref().is_some_and(|next| next.0 == value) {
            self.taken = next;
        } else if now < ends && self.is_exact() {
            self.violates("the key of a lost lock is given back under its kept work");
        }
    }

    /// Returns whether nothing but a release deletes a key before its end.
    fn is_exact(&self) -> bool {
        let plan = &self.terms.plan;
        // A process that is stopped between its check and its look at the server may see the key of another owner.
        !plan.loses_data() && !plan.steps_clocks() && plan.topology.is_alone() && !plan.stops_inside
    }

    fn violates(&self, rule: &'static str) {
        let call = self.terms.call;
        ledger(|it| it.violates(rule, it.calls[call].to_string()));
    }
}

/// The value of a key of the first server, and when it ends in true time.
fn taken(state: &State, key: &[u8]) -> Option<(Bytes, u64)> {
    let entry = state.hosts[0].server.entry(key)?;
    let Data::Text(value) = &entry.data else {
        return None;
    };
    let left = state.true_time_left(0, entry.ends?);
    let left = u64::try_from(left).ok()?;
    Some((value.clone(), state.now + left))
}
