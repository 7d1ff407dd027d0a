//! Jobs that run once in each tick.

use std::time::{Duration, SystemTime};

use lock_core::Tick;
use lock_core::machine::timeout;

use super::run::Inside;
use super::watched::Watched;
use super::{Draw, Worker, name};
use crate::ledger::{Completed, Job, Run, ledger};
use crate::plan::{Plan, Verb};
use crate::world::{MILLI, sim};

/// The lengths of ticks, in milliseconds. All processes have the same for a key.
const INTERVALS: [u64; 5] = [300, 500, 700, 1_000, 2_000];

impl Worker {
    pub(super) async fn every(&mut self) {
        let Draw { mut key, ttl, .. } = self.draw();
        if self.rng.percent(60) {
            key = self.plan.own_key(Verb::Every);
        }
        let interval = interval(&self.plan, key);
        let max_hold = self
            .rng
            .percent(30)
            .then(|| self.rng.pick(&[30, 150, 450]) * MILLI);
        let from_next = self.rng.percent(40);
        let every = self.locks.every(name(key), Duration::from_nanos(interval));
        let mut every = every.ttl(Duration::from_nanos(ttl));
        if let Some(longest) = max_hold {
            every = every.max_hold(Duration::from_nanos(longest));
        }
        if from_next {
            every = every.from_next_tick();
        }
        let job = Job::begins(self.process, key, interval, from_next);
        let job = ledger(|it| it.takes_part(job));
        let mut worker = self.fork();
        let run = every.run(move |tick| worker.runs(job, &tick, ttl, max_hold));
        let left = self.plan.work_ends.saturating_sub(sim().now());
        let lasts = (self.rng.pick(&[1_000, 3_000, 8_000]) * MILLI).min(left);
        let ended = timeout(Duration::from_nanos(lasts), run).await;
        let error = match ended {
            Ok(Err(error)) => Some(error),
            Ok(Ok(())) | Err(_) => None,
        };
        ledger(|it| it.job_ends(&self.plan, job, error.as_ref()));
    }

    /// One run of a job.
    fn runs(&mut self, job: usize, tick: &Tick, ttl: u64, max_hold: Option<u64>) -> Watched {
        let (key, interval) = ledger(|it| (it.jobs[job].key, it.jobs[job].interval));
        let call = self.is_granted(key, ttl);
        let run = Run::begins(job, call, micros(tick.began()), micros(tick.ends()));
        let number = tick.ends_unix_micros();
        let run = ledger(|it| it.tick_begins(&self.plan, run, number));
        let mut terms = self.terms(call);
        terms.max_hold = max_hold;
        terms.asks_for_time = true;
        let share = self.rng.pick(&[0, 10, 10, 40, 140, 310]);
        let lasts = interval / 100 * share;
        let lock = tick.handle();
        let part = self.part(terms, key, ttl);
        part.tries_to_leave(tick.handle());
        let inside = self
            .rng
            .pick(&[Inside::Looks, Inside::Looks, Inside::Keeps]);
        part.body(tick.handle(), inside, lasts).then(move || {
            // In this order, because a process that stops while it reads its clock goes on with the reading of before.
            let at = sim().now();
            let remaining = lock.remaining().as_nanos() as u64;
            let completed = Completed { at, remaining };
            ledger(|it| it.runs[run].completed = Some(completed));
        })
    }
}

fn interval(plan: &Plan, key: usize) -> u64 {
    let which = plan.seed.wrapping_add(key as u64) % INTERVALS.len() as u64;
    INTERVALS[which as usize] * MILLI
}

fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.expect("after 1970").as_micros() as i64
}
