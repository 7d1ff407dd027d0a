//! Tests jobs that one of all processes runs in each tick.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use lock_core::{Error, ErrorKind, Interval, LockManager, Schedule, Tick};
use lock_tests::wait;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Fixture, drains, kind, long};

type Job = JoinHandle<Result<(), Error>>;

/// The runs of all processes: each with the end of its tick.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<Vec<SystemTime>>>);

impl Runs {
    fn note(&self, tick: &Tick) {
        self.0.lock().expect("no panic").push(tick.ends());
    }

    fn all(&self) -> Vec<SystemTime> {
        self.0.lock().expect("no panic").clone()
    }

    async fn reach(&self, count: usize) {
        wait::eventually("the job has run in as many ticks", async || {
            self.all().len() >= count
        })
        .await;
    }

    /// Checks that the runs are those of different ticks, in their order.
    #[track_caller]
    fn are_of_one_each(&self) {
        let runs = self.all();
        assert!(runs.is_sorted_by(|one, next| one < next), "{runs:?}");
    }
}

/// Starts a job that only notes its run.
fn every(locks: &LockManager, schedule: impl Schedule + 'static, runs: &Runs) -> Job {
    let runs = runs.clone();
    let job = locks.every("k", schedule).ttl(long());
    tokio::spawn(job.run(move |tick| {
        runs.note(&tick);
        async {}
    }))
}

/// A tick of an hour whose begin and end are far from now.
fn hour() -> Interval {
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let middle = now.expect("after 1970") + hour / 2;
    Interval::new(hour).starting_at(middle)
}

async fn ends(locks: &LockManager, job: Job) {
    locks.drain(wait::PATIENCE).await;
    let ended = tokio::time::timeout(wait::PATIENCE, job).await;
    ended
        .expect("in time")
        .expect("no panic")
        .expect("no error");
}

/// Several independent servers have no common clock.
pub(super) async fn over_several_servers_a_job_is_invalid_and_says_why(store: &Fixture) {
    let locks = store.manager().await;
    let run = locks.every("k", hour()).run(|_| async { panic!("it ran") });
    let error = run.await.expect_err("several servers");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("common clock"), "{error}");
    assert_eq!(store.taken(), 0);
}

pub(super) async fn one_of_several_managers_runs_each_tick(store: &Fixture) {
    let runs = Runs::default();
    let mut jobs = Vec::new();
    for _ in 0..4 {
        let locks = store.manager().await;
        let job = every(&locks, Duration::from_millis(300), &runs);
        jobs.push((locks, job));
    }
    runs.reach(5).await;
    for (locks, job) in jobs {
        ends(&locks, job).await;
    }
    runs.are_of_one_each();
    store.is_left_clean().await;
}

pub(super) async fn a_completed_tick_is_not_run_by_a_process_that_comes_later(store: &Fixture) {
    let (schedule, runs) = (hour(), Runs::default());
    let first = store.manager().await;
    let job = every(&first, schedule, &runs);
    runs.reach(1).await;
    wait::eventually("the key cools down", async || {
        let refused = first.lock("k").acquire().await;
        refused.is_err_and(|error| error.is_cooling_down())
    })
    .await;
    let later = store.manager().await;
    let again = every(&later, schedule, &runs);
    // The later process asks at once, or never.
    tokio::time::sleep(Duration::from_millis(100)).await;
    ends(&later, again).await;
    ends(&first, job).await;
    assert_eq!(runs.all().len(), 1);
    let left = runs.all()[0].duration_since(SystemTime::now());
    let left = left.expect("the tick goes on");
    let refused = later_refusal(store).await;
    assert!(
        refused.abs_diff(left) < Duration::from_secs(60),
        "{refused:?}"
    );
}

/// Returns for how long the key cools down.
async fn later_refusal(store: &Fixture) -> Duration {
    let refused = store.lock("k").await.acquire().await;
    let error = refused.expect_err("the key cools down until its tick ends");
    assert!(error.is_cooling_down());
    error.retry_after().expect("an exact end")
}

pub(super) async fn the_ticks_that_begin_during_a_run_are_left_out(store: &Fixture) {
    let tick = Duration::from_millis(200);
    let (runs, inside) = (Runs::default(), Arc::new(AtomicUsize::new(0)));
    let mut jobs = Vec::new();
    for _ in 0..2 {
        let locks = store.manager().await;
        let (noted, inside) = (runs.clone(), Arc::clone(&inside));
        let job = locks.every("k", tick).ttl(long()).run(move |tick| {
            noted.note(&tick);
            let inside = Arc::clone(&inside);
            async move {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two runs");
                tokio::time::sleep(Duration::from_millis(500)).await;
                assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1, "two runs");
            }
        });
        jobs.push((locks, tokio::spawn(job)));
    }
    runs.reach(3).await;
    for (locks, job) in jobs {
        ends(&locks, job).await;
    }
    for pair in runs.all().windows(2) {
        let apart = pair[1].duration_since(pair[0]).expect("rising ticks");
        // A run of 500 ms touches three ticks. The run after it belongs to the fourth at the earliest, if the same
        // process runs it, and to the third if another one comes in the rest of that tick.
        assert!(apart >= 2 * tick, "{apart:?}");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_run_that_does_not_complete_is_repeated_by_a_process_that_comes_later(
    store: &Fixture,
) {
    let (schedule, runs) = (hour(), Runs::default());
    let first = store.manager().await;
    let noted = runs.clone();
    let job = first.every("k", schedule).ttl(long());
    let job = job.max_hold(Duration::from_millis(50)).run(move |tick| {
        noted.note(&tick);
        std::future::pending()
    });
    let job = tokio::spawn(job);
    runs.reach(1).await;
    wait::eventually("the run is over", async || store.taken() == 0).await;
    // The same process waits for the next tick.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(runs.all().len(), 1);
    let later = store.manager().await;
    let again = every(&later, schedule, &runs);
    runs.reach(2).await;
    ends(&later, again).await;
    ends(&first, job).await;
    let runs = runs.all();
    assert_eq!(runs[0], runs[1], "the same tick");
}

pub(super) async fn a_run_that_has_begun_ends_before_its_manager_is_drained(store: &Fixture) {
    let locks = store.manager().await;
    let (runs, done) = (Runs::default(), Arc::new(AtomicUsize::new(0)));
    let (noted, counted) = (runs.clone(), Arc::clone(&done));
    let job = locks.every("k", hour()).ttl(long()).run(move |tick| {
        noted.note(&tick);
        let done = Arc::clone(&counted);
        async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            done.fetch_add(1, Ordering::SeqCst);
        }
    });
    let job = tokio::spawn(job);
    runs.reach(1).await;
    drains(&locks).await;
    assert_eq!(done.load(Ordering::SeqCst), 1);
    job.await.expect("no panic").expect("no error");
    assert!(later_refusal(store).await > Duration::ZERO);
}

pub(super) async fn a_job_that_begins_with_the_next_tick_leaves_this_one_out(store: &Fixture) {
    let locks = store.manager().await;
    let (tick, runs) = (Duration::from_millis(700), Runs::default());
    let current = tick.next(SystemTime::now());
    let noted = runs.clone();
    let job = locks.every("k", tick).ttl(long()).from_next_tick();
    let job = tokio::spawn(job.run(move |tick| {
        noted.note(&tick);
        async {}
    }));
    runs.reach(1).await;
    ends(&locks, job).await;
    assert!(runs.all()[0] > current, "a tick that began later");
}

pub(super) async fn settings_of_a_job_out_of_bounds_are_invalid(store: &Fixture) {
    let locks = store.manager().await;
    let never = |_: Tick| async { panic!("it ran") };
    let zero = locks.every("k", Duration::ZERO).run(never);
    assert_eq!(kind(zero.await), ErrorKind::Invalid);
    let short = locks.every("k", hour()).ttl(Duration::from_millis(1));
    assert_eq!(kind(short.run(never).await), ErrorKind::Invalid);
    let nested = locks.lock("k").run(locks.every("k", hour()).run(never));
    assert_eq!(kind(nested.await.expect("held")), ErrorKind::Invalid);
    assert_eq!(store.taken(), 0);
}

pub(super) async fn a_tick_leaves_no_record_and_has_no_ticket(store: &Fixture) {
    let locks = store.manager().await;
    let (ran, has_run) = oneshot::channel();
    let mut ran = Some(ran);
    let job = locks.every("k", hour()).ttl(long()).run(move |tick| {
        let ran = ran.take();
        async move {
            let soon = Duration::from_millis(10);
            let record = tick.remember("7", soon);
            let ticket = tick.handle().ticket(soon).await.map(drop);
            let kinds = [kind(record), kind(ticket)];
            assert!(tick.is_valid(), "the run goes on");
            let ran = ran.expect("one run of a tick");
            ran.send(kinds).expect("the test waits");
        }
    });
    let job = tokio::spawn(job);
    assert_eq!(has_run.await.expect("it runs"), [ErrorKind::Invalid; 2]);
    // No other process runs the same tick.
    let other = store.manager().await;
    wait::eventually("the tick is completed", async || {
        let error = other.lock("k").acquire().await.expect_err("taken");
        error.is_cooling_down()
    })
    .await;
    ends(&locks, job).await;
    locks.forget("k").await.map(drop).unwrap_or_default();
    other.forget("k").await.expect("no fault");
    store.is_left_clean().await;
}
