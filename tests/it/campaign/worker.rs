//! Runs a worker: a process with a manager for each namespace.
//!
//! Its tasks take locks as the plan says and write their outcomes into the journal.

use std::env;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_core::{Error, ErrorKind, LockGuard, LockKey, LockManager, LockRequest, Wait};
use lock_tests::{ChildProcess, wait};
use tokio::time::sleep;

use super::journal::{Journal, Who};
use super::plan::{LAST_CALL, Plan, Topology, WORK};
use super::work::{End, Step, TASKS, Verb, steps};
use crate::ledger::now;

const WHICH: &str = "LOCK_TESTS_CAMPAIGN_WORKER";
const URL: &str = "LOCK_TESTS_CAMPAIGN_URL";
const FOLDER: &str = "LOCK_TESTS_CAMPAIGN_FOLDER";

/// The time between two checks of an owner that it still has the lock.
const LOOK: Duration = Duration::from_millis(10);
/// The delay of a wake-up from which on a task counts as kept from running.
const HICCUP: Duration = Duration::from_millis(100);
/// The task number for lines about the worker itself.
pub(super) const ITSELF: usize = 99;

/// Starts this binary again, as a worker that begins at that time of the shared clock.
pub(super) fn start(
    plan: &Plan,
    worker: usize,
    life: u64,
    begin: u64,
    url: &str,
    folder: &Path,
) -> ChildProcess {
    let mut command = Command::new(env::current_exe().expect("this binary"));
    let which = format!("{} {} {worker} {life} {begin}", plan.seed, plan.number);
    command
        .args(["--exact", "campaign::worker::works_as_planned"])
        .args(["--ignored", "--nocapture"])
        .env(WHICH, which)
        .env(URL, url)
        .env(FOLDER, folder);
    ChildProcess::spawn(command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that other tests start"]
async fn works_as_planned() {
    let Ok(which) = env::var(WHICH) else { return };
    let numbers: Vec<u64> = which
        .split(' ')
        .map(|it| it.parse().expect("a number"))
        .collect();
    let [seed, number, worker, life, begin] = numbers.try_into().expect("five numbers");
    let worker = usize::try_from(worker).expect("an index");
    let folder = PathBuf::from(env::var(FOLDER).expect("set"));
    let plan = Plan::of(seed, number);
    let url = env::var(URL).expect("set");
    let managers: Vec<_> = ["lockkit:", ""]
        .map(|namespace| (namespace, manager(&plan, &url, namespace)))
        .into();
    let journal = Arc::new(Journal::open(&folder));
    let beats = tokio::spawn(beat(
        Arc::clone(&journal),
        Who {
            worker,
            life,
            task: ITSELF,
        },
    ));
    let tasks = (0..TASKS).map(|task| {
        let worker = Worker {
            who: Who { worker, life, task },
            plan: plan.clone(),
            managers: managers.clone(),
            journal: Arc::clone(&journal),
            begin,
        };
        tokio::spawn(worker.work())
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no panic");
    }
    let myself = Who {
        worker,
        life,
        task: ITSELF,
    };
    journal.say(myself, 0, "rested");
    // The parent ends this process in any case.
    while !folder.join("end").exists() {
        sleep(LOOK).await;
    }
    beats.abort();
    for (_, locks) in managers {
        let left = locks.drain(wait::PATIENCE).await;
        journal.say(
            myself,
            0,
            &format!("drained {} {}", left.held(), left.releasing()),
        );
    }
}

fn manager(plan: &Plan, url: &str, namespace: &str) -> LockManager {
    let builder = match url.split(',').collect::<Vec<_>>().as_slice() {
        nodes if plan.topology == Topology::Redlock => {
            let longest = Duration::from_millis(if plan.short_ttls { 2_500 } else { 30_000 });
            LockManager::quorum(nodes)
                .assume_fresh()
                .max_ttl(longest)
                .default_ttl(longest)
        }
        _ => LockManager::builder(url).replica_acks(plan.replica_acks),
    };
    builder.namespace(namespace).connect_lazy().expect("a URL")
}

/// Records the times in which this process did not run.
async fn beat(journal: Arc<Journal>, who: Who) {
    loop {
        let asleep = now();
        sleep(LOOK).await;
        let late = Duration::from_nanos(now() - asleep).saturating_sub(LOOK);
        if late >= HICCUP {
            journal.say_of(asleep, who, 0, &format!("hiccup {}", late.as_millis()));
        }
    }
}

struct Worker {
    who: Who,
    plan: Plan,
    managers: Vec<(&'static str, LockManager)>,
    journal: Arc<Journal>,
    begin: u64,
}

impl Worker {
    async fn work(self) {
        let Who { worker, life, task } = self.who;
        self.until(Duration::ZERO).await;
        for (call, step) in steps(&self.plan, worker, life, task).enumerate() {
            let call = call as u64;
            sleep(step.pause).await;
            if self.left(WORK).is_zero() {
                return;
            }
            self.take(call, &step).await;
        }
    }

    fn left(&self, time: Duration) -> Duration {
        let end = Duration::from_nanos(self.begin) + time;
        end.saturating_sub(Duration::from_nanos(now()))
    }

    async fn until(&self, time: Duration) {
        sleep(self.left(time)).await;
    }

    fn say(&self, call: u64, words: &str) {
        self.journal.say(self.who, call, words);
    }

    fn request(&self, step: &Step) -> LockRequest {
        let key = self.plan.keys[step.key];
        let managers = &mut self.managers.iter();
        let (_, locks) = managers
            .find(|it| it.0 == key.namespace)
            .expect("a manager");
        let request = locks
            .lock(LockKey::exact(key.name))
            .ttl(step.ttl)
            .cooldown(step.cooldown);
        match step.wait {
            _ if step.verb == Verb::TryAcquire => request,
            wait => request.wait(wait),
        }
    }

    async fn take(&self, call: u64, step: &Step) {
        let wait = match (step.verb, step.wait) {
            (Verb::TryAcquire, _) | (_, Wait::None) => "0".to_owned(),
            (_, Wait::For(wait)) => wait.as_millis().to_string(),
            _ => "for_ever".to_owned(),
        };
        let (ttl, cooldown) = (step.ttl.as_millis(), step.cooldown.as_millis());
        self.say(call, &format!("asked {} {ttl} {wait} {cooldown}", step.key));
        let cancel = step
            .cancel
            .unwrap_or(Duration::MAX)
            .min(self.left(LAST_CALL));
        let request = self.request(step);
        match step.verb {
            Verb::Acquire => self.acquire(call, step, cancel, request.acquire()).await,
            Verb::TryAcquire => {
                let attempt = async {
                    let refusal = request.try_acquire().await?;
                    Ok(refusal)
                };
                let ended =
                    tokio::select! { ended = attempt => Some(ended), () = sleep(cancel) => None };
                match ended {
                    Some(Ok(Some(guard))) => self.hold(call, step, guard).await,
                    Some(Ok(None)) => self.say(call, "busy"),
                    Some(Err(error)) => self.refused(call, &error),
                    None => self.say(call, "cancelled"),
                }
            }
            Verb::Run => self.run(call, step, cancel, request).await,
        }
    }

    async fn acquire(
        &self,
        call: u64,
        step: &Step,
        cancel: Duration,
        acquire: impl Future<Output = Result<LockGuard, Error>>,
    ) {
        let ended = tokio::select! { ended = acquire => Some(ended), () = sleep(cancel) => None };
        match ended {
            Some(Ok(guard)) => self.hold(call, step, guard).await,
            Some(Err(error)) => self.refused(call, &error),
            None => self.say(call, "cancelled"),
        }
    }

    fn refused(&self, call: u64, error: &Error) {
        let words = match error.kind() {
            ErrorKind::Busy => "busy".to_owned(),
            ErrorKind::Lost => "lost".to_owned(),
            kind => format!("refused {kind:?} {error}"),
        };
        self.say(call, &words);
    }

    /// Claims the lock while it is valid, at most for the time of the step. Returns whether it is still
    /// valid.
    async fn claim(&self, call: u64, step: &Step, fence: u64, is_valid: impl Fn() -> bool) -> bool {
        // The clock is read before the lock is checked. So the lock was valid at that time, even if this
        // process is stopped in between.
        let mut time = now();
        let from = time;
        let mut word = format!("inside {fence}");
        loop {
            if !is_valid() {
                return false;
            }
            self.journal.say_of(time, self.who, call, &word);
            if Duration::from_nanos(time - from) >= step.hold {
                return true;
            }
            sleep(LOOK).await;
            time = now();
            "still".clone_into(&mut word);
        }
    }

    async fn hold(&self, call: u64, step: &Step, guard: LockGuard) {
        let fence = u64::from(guard.fencing_token());
        if !self.claim(call, step, fence, || guard.is_valid()).await {
            self.say(call, "lost");
        }
        self.say(call, "out");
        match step.end {
            End::Release => {
                let words = match guard.release().await {
                    Ok(()) => "released".to_owned(),
                    Err(error) => format!("release_failed {:?} {error}", error.kind()),
                };
                self.say(call, &words);
            }
            End::InBackground => guard.release_in_background(),
            End::Drop => drop(guard),
        }
    }

    async fn run(&self, call: u64, step: &Step, cancel: Duration, request: LockRequest) {
        let entered = AtomicBool::new(false);
        let run = request.run_with(|lock| {
            entered.store(true, Ordering::SeqCst);
            async move {
                let fence = u64::from(lock.fencing_token());
                if !self.claim(call, step, fence, || lock.is_valid()).await {
                    self.say(call, "lost");
                }
                self.say(call, "out");
            }
        });
        let mut run = pin!(run);
        let ended = tokio::select! { ended = &mut run => Some(ended), () = sleep(cancel) => None };
        match ended {
            None if !entered.load(Ordering::SeqCst) => self.say(call, "cancelled"),
            // A body that is dropped releases its lock.
            None => self.say(call, "dropped"),
            Some(Ok(())) => self.say(call, "released"),
            Some(Err(error))
                if entered.load(Ordering::SeqCst) && error.kind() != ErrorKind::Lost =>
            {
                self.say(call, &format!("release_failed {:?} {error}", error.kind()));
            }
            Some(Err(error)) => self.refused(call, &error),
        }
    }
}
