//! Ticks: at most one completed run of each, none that began during another run, and one where nothing is in its way.

use std::ops::Range;

use lock_core::{Error, ErrorKind};

use super::{Answer, Ledger};
use crate::plan::{Plan, Topology, Verb, Weather};
use crate::world::{LONGEST_STOP, MICRO, State, sim};

/// How far, in microseconds, an estimate of the server's clock may be behind it, and how long a question may take.
const BEHIND: i64 = 60_000;
const LATE: i64 = 400_000;
/// The round trips of a release. In a cluster the keeper may connect to the node first, for work that kept the lock.
const RELEASE: u64 = 2;
const RELEASE_IN_CLUSTER: u64 = 8;

/// One call of `Every::run`.
#[derive(Clone, Debug)]
pub struct Job {
    pub process: usize,
    pub key: usize,
    /// In nanoseconds.
    pub interval: u64,
    pub from_next: bool,
    /// By the server's clock, in microseconds of Unix time, as all numbers of time here are that are not `u64`.
    pub from: i64,
    /// The same in true time.
    pub asked: u64,
    pub until: Option<i64>,
}

impl Job {
    pub fn begins(process: usize, key: usize, interval: u64, from_next: bool) -> Self {
        Self {
            process,
            key,
            interval,
            from_next,
            from: sim().look(|state| state.server_time(0)),
            asked: sim().now(),
            until: None,
        }
    }

    fn length(&self) -> i64 {
        (self.interval / 1_000) as i64
    }
}

/// A run of a job, as its body sees it.
#[derive(Clone, Debug)]
pub struct Run {
    pub job: usize,
    pub call: usize,
    pub began: i64,
    pub ends: i64,
    /// The body was begun then.
    pub from: i64,
    pub completed: Option<Completed>,
}

/// The end of a run that was completed.
#[derive(Clone, Copy, Debug)]
pub struct Completed {
    pub at: u64,
    /// How long its lock lasts without a renewal, in nanoseconds.
    pub remaining: u64,
}

impl Run {
    pub fn begins(job: usize, call: usize, began: i64, ends: i64) -> Self {
        Self {
            job,
            call,
            began,
            ends,
            from: sim().look(|state| state.server_time(0)),
            completed: None,
        }
    }
}

impl Ledger {
    /// Notes a call of `Every::run`. Returns its number.
    pub fn takes_part(&mut self, job: Job) -> usize {
        self.jobs.push(job);
        self.jobs.len() - 1
    }

    /// Notes a run, and checks its tick. Returns its number.
    pub fn tick_begins(&mut self, plan: &Plan, run: Run, number: i64) -> usize {
        let job = &self.jobs[run.job];
        let length = job.length();
        let is_a_tick = run.ends % length == 0 && run.ends - length <= run.began;
        let first = if job.from_next {
            // The process learns its tick from the server, whose clock may have stepped back since the call.
            let from = job.from + plan.steps_back(job.asked, sim().now());
            (from / length + 1) * length
        } else {
            0
        };
        let wrong = if number != run.ends || run.ends <= run.began || !is_a_tick {
            Some("a tick has a wrong number")
        } else if run.began > run.from && !plan.steps_clocks() {
            Some("a tick has begun in the future")
        } else if run.began < first {
            Some("a job runs in the tick that it was told to leave out")
        } else {
            None
        };
        if let Some(rule) = wrong {
            self.violates(rule, format!("{run:?}"));
        }
        self.runs.push(run);
        self.runs.len() - 1
    }

    /// Notes the end of a call of `Every::run`, and checks its error.
    pub fn job_ends(&mut self, plan: &Plan, job: usize, error: Option<&Error>) {
        self.jobs[job].until = Some(sim().look(|state| state.server_time(0)));
        let is_right = error.is_none_or(|error| {
            let misconfigured = error.kind() == ErrorKind::Misconfigured;
            misconfigured && plan.refuses()
        });
        if !is_right {
            let text = format!("{error:?}: {:?}", self.jobs[job]);
            self.violates("a job ends by an error", text);
        }
    }

    pub fn check_ticks(&mut self, plan: &Plan, state: &State) {
        for later in 0..self.runs.len() {
            for earlier in 0..later {
                let (one, other) = (&self.runs[earlier], &self.runs[later]);
                if let Some(rule) = self.compare(plan, state, one, other) {
                    self.violates(rule, format!("\n  {one:?}\n  {other:?}"));
                }
            }
        }
        let exits = plan.processes.iter().any(|process| process.exits.is_some());
        // A slot that moves is one in a cluster, where a candidate may have to ask twice.
        if plan.weather == Weather::Calm && plan.faults.is_empty() && !exits {
            self.check_late(plan);
            self.check_left_out(plan, state);
        }
    }

    fn compare(&self, plan: &Plan, state: &State, one: &Run, other: &Run) -> Option<&'static str> {
        let (job, next) = (&self.jobs[one.job], &self.jobs[other.job]);
        if job.key != next.key {
            return None;
        }
        let loses = plan.loses_data() || plan.steps_clocks() || plan.refuses();
        if let (Some(end), Some(_)) = (one.completed, other.completed)
            && one.ends == other.ends
            && !loses
            // The lock of the first may have run out before its server was told of its end.
            && self.calls[other.call].asked < end.at + end.remaining
            // A process that stopped inside its body ends the body before it can notice that the lock has run out meanwhile.
            && !(plan.stops_inside
                && end.remaining == 0
                && self.calls[one.call].answer == Answer::Lost)
        {
            return Some("two runs of a tick are completed");
        }
        if one.job != other.job {
            return None;
        }
        if one.ends >= other.ends {
            return Some("a job runs a tick again");
        }
        let end = self.ends.get(&one.call)?;
        let begins = other.ends - job.length();
        // An answer that comes late is carried on from the moment at which it came. A process that stops while it reads its
        // clock may go on with the reading of before.
        let stop = if plan.stops_inside { LONGEST_STOP } else { 0 };
        let stop = stop + stands_before(plan, state, job.process, one.from);
        let late = (plan.processes[job.process].operation_timeout + stop) / 1_000;
        if begins + BEHIND + (late as i64) < end.server_time && !plan.steps_clocks() {
            return Some("a tick that began during a run is run");
        }
        None
    }

    /// Checks that a process asks once for each tick, at its begin. So a run of a job that was there begins soon after it.
    fn check_late(&mut self, plan: &Plan) {
        for run in self.runs.clone() {
            let job = &self.jobs[run.job];
            let begins = run.ends - job.length();
            let is_own = job.key == plan.own_key(Verb::Every);
            let was_there = job.from + LATE < begins;
            if is_own && was_there && run.began > begins + LATE && !self.is_busy(&run, begins) {
                self.violates("a process asks again in a tick", format!("{run:?}"));
            }
        }
    }

    /// Returns whether the job of this run has run it before, to a time behind `begins`.
    fn is_busy(&self, run: &Run, begins: i64) -> bool {
        let before = self.runs.iter().filter(|it| it.job == run.job);
        let mut before = before.filter(|it| it.began < run.began);
        before.any(|it| self.ended(it) + BEHIND > begins)
    }

    /// When the lock of a run has ended, with the work that keeps it.
    fn ended(&self, run: &Run) -> i64 {
        let end = self.ends.get(&run.call);
        let body = end.map_or(i64::MAX, |end| end.server_time);
        let kept = self.kept_work.iter().filter(|it| it.call == run.call);
        let kept = kept.map(|it| it.until.unwrap_or(i64::MAX)).max();
        body.max(kept.unwrap_or(body))
    }

    /// Checks that each tick in which a job takes part is run, unless a run that began before goes on, or its release is on its
    /// way.
    fn check_left_out(&mut self, plan: &Plan, state: &State) {
        let release = longest_release(plan);
        for job in self.jobs.clone() {
            let (Some(until), length) = (job.until, job.length()) else {
                continue;
            };
            if job.key != plan.own_key(Verb::Every) {
                continue;
            }
            let mut begins = ((job.from + LATE) / length + 1) * length;
            while begins + length + LATE < until {
                let of_key = self
                    .runs
                    .iter()
                    .filter(|it| self.jobs[it.job].key == job.key);
                let mut of_key = of_key.filter(|run| run.from < begins + length);
                let is_run = of_key.any(|run| {
                    let ended = self.ended(run);
                    let process = self.jobs[run.job].process;
                    let late = delay(plan, state, process, ended..begins);
                    let freed = ended.saturating_add(release + late);
                    run.ends == begins + length || freed > begins && run.ends <= begins
                });
                // Its lock was granted to a job that was given up, or whose manager was dropped, before its body began. The
                // others were refused by then.
                let mut jobs = self.jobs.iter().filter(|it| it.key == job.key);
                let is_given_up = jobs.any(|it| {
                    let leaves = plan.processes[it.process].leaves;
                    let leaves = leaves.map(|at| state.server_time_at(0, at));
                    let until = it.until.or(leaves);
                    until.is_some_and(|until| (begins..begins + LATE).contains(&until))
                });
                if !is_run && !is_given_up {
                    let text = format!("the tick of {begins}: {job:?}");
                    self.violates("a tick is left out", text);
                }
                begins += length;
            }
        }
    }
}

/// How long the process stood still right before a body began at that time. Its answer may have waited for it.
fn stands_before(plan: &Plan, state: &State, process: usize, from: i64) -> u64 {
    let stops = plan.faults.iter().filter(|it| {
        let to = state.server_time_at(0, it.end()) + BEHIND;
        let span = state.server_time_at(0, it.at)..=to;
        it.fault.is_a_stop() && it.fault.process() == Some(process) && span.contains(&from)
    });
    stops.map(|it| it.lasts).sum()
}

/// The longest time of a release in microseconds. The usual segment takes up to one and a half times the latency.
fn longest_release(plan: &Plan) -> i64 {
    let trips = match plan.topology {
        Topology::Cluster => RELEASE_IN_CLUSTER,
        _ => RELEASE,
    };
    (trips * 3 * plan.latency / 1_000) as i64
}

/// By how much segments of the process that took longer than usual may delay a release of this time, in microseconds. Those
/// behind such a segment wait for it.
fn delay(plan: &Plan, state: &State, process: usize, span: Range<i64>) -> i64 {
    let its = state.late.iter().filter(|it| it.process == process);
    let its = its.filter(|it| {
        let arrives = it.sent + it.by + 3 * plan.latency / 2;
        state.server_time_at(0, it.sent) < span.end && state.server_time_at(0, arrives) > span.start
    });
    its.map(|it| (it.by / MICRO) as i64).sum()
}
