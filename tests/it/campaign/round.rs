//! Runs one round: starts servers and workers, applies the faults, and compares the records.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lock_tests::{ChildProcess, wait};

use super::fault::Fault;
use super::journal::{self, Entry};
use super::ledger::{Account, Span};
use super::plan::{Plan, Scheduled};
use super::stage::Stage;
use super::watch::Watch;
use super::worker::{self, ITSELF};
use crate::ledger::now;

/// The time from the start of the workers to their first request.
const WARM_UP: Duration = Duration::from_millis(800);
/// The patience for a busy machine.
const PATIENCE: Duration = Duration::from_secs(25);
/// The time within which a request on a connection that never answered is undone.
const LATE: Duration = Duration::from_secs(8);

/// Each worker, with the number of its predecessors that were killed.
type Workers = Vec<(u64, ChildProcess)>;

/// Runs a round. Returns its account and all violations.
pub(super) fn run(plan: &Plan) -> (Account, Vec<String>) {
    let stage = Stage::start(plan);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    drop(journal::Journal::open(folder));
    let begin = now() + nanos(WARM_UP);
    let start = |worker, life| worker::start(plan, worker, life, begin, &stage.url(worker), folder);
    let workers: Workers = (0..plan.workers)
        .map(|worker| (0, start(worker, 0)))
        .collect();
    let workers = Mutex::new(workers);
    let keys = plan.keys.iter().map(|key| key.in_redis()).collect();
    let watch = Watch::begin(stage.addresses(), keys);

    let spans = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for scheduled in &plan.faults {
            let (stage, workers, spans, start) = (&stage, &workers, &spans, &start);
            scope.spawn(move || {
                let Scheduled { at, lasts, fault } = *scheduled;
                let end = begin + nanos(at + lasts);
                sleep_until(begin + nanos(at));
                let from = now();
                match fault {
                    Fault::StopWorker { worker } => {
                        locked(workers)[worker].1.stop();
                        sleep_until(end);
                        locked(workers)[worker].1.cont();
                    }
                    Fault::KillWorker { worker } => {
                        locked(workers)[worker].1.kill();
                        sleep_until(end);
                        let it = &mut locked(workers)[worker];
                        let life = it.0 + 1;
                        *it = (life, start(worker, life));
                    }
                    fault => {
                        stage.begin(plan, fault, lasts);
                        sleep_until(end);
                        stage.end(fault);
                    }
                }
                locked(spans).push(Span {
                    from,
                    until: now(),
                    fault,
                });
            });
        }
    });
    let spans = spans.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut workers = workers.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut wrong = rest(folder, &mut workers);
    wrong.extend(nothing_is_left(plan, &stage));
    let looks = watch.end();
    std::fs::write(folder.join("end"), "").expect("a folder");
    for (worker, (_, process)) in workers.iter_mut().enumerate() {
        if !process.wait(PATIENCE).is_some_and(|it| it.success()) {
            wrong.push(format!("worker {worker} fails:\n{}", process.output()));
        }
    }
    let entries = journal::read(folder);
    let drains = entries.iter().filter(|entry| entry.words[0] == "drained");
    wrong.extend(
        drains
            .filter(|it| it.number(1) + it.number(2) > 0)
            .map(|it| format!("a drain leaves locks: {it:?}")),
    );
    let account = Account::of(plan, begin, &entries, spans, looks);
    wrong.extend(account.check());
    if !wrong.is_empty() {
        keep(folder, plan);
    }
    (account, wrong)
}

/// Waits until every worker has done all its work.
fn rest(folder: &Path, workers: &mut Workers) -> Vec<String> {
    let rested = |entries: &[Entry], worker: usize, life: u64| {
        let mut of_it = entries
            .iter()
            .filter(|it| (it.who.worker, it.who.life) == (worker, life));
        of_it.any(|it| it.who.task == ITSELF && it.words[0] == "rested")
    };
    let all = wait::holds_within(PATIENCE, || {
        thread::sleep(Duration::from_millis(50));
        let entries = journal::read(folder);
        let mut lives = workers.iter_mut().enumerate();
        lives.all(|(worker, (life, process))| {
            rested(&entries, worker, *life) || !process.is_running()
        })
    });
    if all {
        Vec::new()
    } else {
        vec!["a worker does not finish its work".to_owned()]
    }
}

/// Checks that no lock outlives its clients, except as documented.
fn nothing_is_left(plan: &Plan, stage: &Stage) -> Vec<String> {
    let any = |which: fn(&Fault) -> bool| plan.faults.iter().any(|it| which(&it.fault));
    let twice = any(|it| matches!(it, Fault::Twice { .. }));
    let mut left = Vec::new();
    if plan.short_ttls || !twice {
        let limit = LATE + Duration::from_secs(if plan.short_ttls { 3 } else { 0 });
        let gone = wait::holds_within(limit, || {
            thread::sleep(Duration::from_millis(20));
            left = stage.locks();
            left.is_empty()
        });
        if gone {
            left.clear();
        }
    }
    let left = left
        .into_iter()
        .map(|key| format!("no client is left, and {key} still exists"));
    let endless = stage
        .without_end()
        .into_iter()
        .map(|key| format!("{key} never expires"));
    left.chain(endless).collect()
}

/// Keeps the journal of a failed round for its analysis.
fn keep(folder: &Path, plan: &Plan) {
    let kept = std::env::temp_dir().join(format!("campaign-{}-{}.journal", plan.seed, plan.number));
    if std::fs::copy(folder.join("journal"), &kept).is_ok() {
        println!("the journal is in {}", kept.display());
    }
}

fn sleep_until(time: u64) {
    thread::sleep(Duration::from_nanos(time.saturating_sub(now())));
}

pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("a span of this life")
}

fn locked<T>(it: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
