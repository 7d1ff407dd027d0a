//! Ticks by a clock that the test moves.

use std::time::{Duration, SystemTime};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::yield_now;

use super::every::Tick;
use crate::LockManager;
use crate::base::machine::timeout;
use crate::base::manual_clock::ManualClock;

const TICK: Duration = Duration::from_secs(60);

/// Starts a job whose first run lasts for `first` of the clock.
async fn job(clock: &ManualClock, first: Duration) -> UnboundedReceiver<Tick> {
    let builder = LockManager::builder("memory:").clock(clock.clone());
    let locks = builder.connect().await.expect("a manager");
    let (ran, runs) = unbounded_channel();
    let (clock, mut lasts) = (clock.clone(), first);
    tokio::spawn(locks.every("k", TICK).ttl(TICK * 60).run(move |tick| {
        clock.advance(std::mem::take(&mut lasts));
        ran.send(tick).expect("the test waits");
        async {}
    }));
    runs
}

/// Lets the job do what it can do now.
async fn settles() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test]
async fn each_tick_has_one_run_and_the_next_one_begins_at_its_end() {
    let clock = ManualClock::new();
    let mut runs = job(&clock, Duration::ZERO).await;
    let first = runs.recv().await.expect("a run");
    for number in 1..4 {
        settles().await;
        clock.advance(TICK - Duration::from_millis(1));
        settles().await;
        clock.advance(Duration::from_millis(1));
        let next = runs.recv().await.expect("a run");
        assert_eq!(next.ends(), first.ends() + number * TICK);
        assert!(next.began() >= next.ends() - TICK);
        let ends = SystemTime::UNIX_EPOCH
            + Duration::from_micros(next.ends_unix_micros().try_into().expect("after 1970"));
        assert_eq!(ends, next.ends());
    }
    settles().await;
    assert!(runs.try_recv().is_err(), "no tick has two runs");
}

#[tokio::test]
async fn ticks_that_began_during_a_run_are_left_out() {
    let clock = ManualClock::new();
    let lasts = TICK * 5 / 2;
    let mut runs = job(&clock, lasts).await;
    let first = runs.recv().await.expect("a run");
    settles().await;
    assert!(runs.try_recv().is_err(), "the tick that runs is left out");
    clock.advance(TICK);
    let next = runs.recv().await.expect("a run");
    let over = first.began() + lasts;
    assert!(next.ends() > over + TICK, "a tick that began after the run");
    assert!(next.ends() <= over + 2 * TICK, "the first such tick");
}

/// An operator frees the key of a run that hangs, and the process is started anew while the key cools down behind the order.
#[tokio::test]
async fn a_process_that_starts_in_another_cooldown_than_that_of_a_run_asks_behind_it() {
    let clock = ManualClock::new();
    let builder = LockManager::builder("memory:").clock(clock.clone());
    let locks = builder.connect().await.expect("a manager");
    let second = Duration::from_secs(1);
    let click = locks.lock("k").cooldown(second).acquire().await;
    click.expect("free").release().await.expect("it cools down");
    let (ran, mut runs) = unbounded_channel();
    tokio::spawn(locks.every("k", TICK * 60 * 24 * 1000).run(move |tick| {
        ran.send(tick).expect("the test waits");
        async {}
    }));
    settles().await;
    assert!(runs.try_recv().is_err(), "the key cools down");
    clock.advance(2 * second);
    let run = timeout(10 * second, runs.recv()).await;
    assert!(run.expect("a run of this tick").is_some());
}

#[tokio::test]
async fn a_panic_of_the_body_ends_the_job_in_its_process_and_leaves_the_tick_to_another() {
    let clock = ManualClock::new();
    let builder = LockManager::builder("memory:").clock(clock.clone());
    let locks = builder.connect().await.expect("a manager");
    let job = || locks.every("k", TICK * 60 * 24 * 1000);
    let panics = async |_| panic!("the data of one night");
    let ended = tokio::spawn(job().run(panics)).await;
    assert!(ended.is_err_and(|error| error.is_panic()));
    let (ran, mut runs) = unbounded_channel();
    tokio::spawn(job().run(move |tick| {
        ran.send(tick).expect("the test waits");
        async {}
    }));
    assert!(runs.recv().await.is_some());
}

/// Two tasks take part in a nightly job for a year and a day, with a change of the clock in spring and in autumn.
#[cfg(feature = "cron")]
#[tokio::test]
async fn a_cron_job_of_two_tasks_runs_once_in_each_night_of_a_year() {
    let clock = ManualClock::new();
    let builder = LockManager::builder("memory:").clock(clock.clone());
    let locks = builder.connect().await.expect("a manager");
    let nightly = crate::Cron::new("30 2 * * *", "Europe/Berlin").expect("valid");
    let (ran, mut runs) = unbounded_channel();
    for _ in 0..2 {
        let ran = ran.clone();
        tokio::spawn(locks.every("k", nightly.clone()).run(move |tick| {
            ran.send(tick).expect("the test waits");
            async {}
        }));
    }
    let mut lengths = std::collections::BTreeMap::new();
    let mut tick = runs.recv().await.expect("a run");
    for _ in 0..366 {
        settles().await;
        assert!(runs.try_recv().is_err(), "the tick has one run");
        let left = tick.ends().duration_since(tick.began()).expect("it ends");
        clock.advance(left);
        let next = runs.recv().await.expect("a run");
        assert_eq!(next.began(), tick.ends(), "no night is left out");
        let length = next.ends().duration_since(tick.ends()).expect("later");
        *lengths.entry(length.as_secs() / 60).or_default() += 1;
        tick = next;
    }
    // The run at 02:30 comes at 03:00 summer time, half an hour early, and is followed by one at 02:30.
    let spring = lengths.remove(&(23 * 60 + 30));
    assert!((2..=4).contains(&spring.unwrap_or(0)), "{lengths:?}");
    let autumn = lengths.remove(&(25 * 60));
    assert!((1..=2).contains(&autumn.unwrap_or(0)), "{lengths:?}");
    assert_eq!(Vec::from_iter(lengths.into_keys()), [24 * 60]);
}
