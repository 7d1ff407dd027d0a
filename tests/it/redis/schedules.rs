//! Tests jobs whose ticks are counted by the server's clock: beside wrong clocks, crashes and waiters.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use lock_core::test_util::ManualClock;
use lock_core::{Interval, LockManager, Schedule, Tick, Wait};
use lock_tests::{ChildProcess, RedisServer, ServerClock, needs, wait};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::processes::{SERVER, parent, process};
use super::{all_is_answered, asked, keys, long, manager, served};

const SECOND: Duration = Duration::from_secs(1);

fn millis(time: SystemTime) -> u128 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.expect("after 1970").as_millis()
}

/// The time by the clock of the server.
fn time_of(server: &RedisServer) -> SystemTime {
    let time = server.cli(&["TIME"]);
    let mut numbers = time.lines().map(|line| line.parse().expect("a number"));
    let mut next = || numbers.next().expect("two numbers");
    let (seconds, micros) = (Duration::from_secs(next()), Duration::from_micros(next()));
    SystemTime::UNIX_EPOCH + seconds + micros
}

/// Ticks of an hour that begin and end far from now.
fn hour() -> Interval {
    let hour = 3600 * SECOND;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Interval::new(hour).starting_at(now.expect("after 1970") + hour / 2)
}

/// The runs of a job.
type Runs = Arc<Mutex<Vec<Tick>>>;

/// Starts a job that only notes its runs.
fn every(locks: &LockManager, schedule: impl Schedule + 'static) -> (Runs, JoinHandle<()>) {
    let runs = Runs::default();
    let noted = Arc::clone(&runs);
    let job = locks.every("k", schedule).ttl(long()).run(move |tick| {
        noted.lock().expect("no panic").push(tick);
        async {}
    });
    let job = tokio::spawn(async { job.await.expect("a job without end") });
    (runs, job)
}

async fn reach(runs: &Runs, count: usize) -> Vec<Tick> {
    let all = || runs.lock().expect("no panic").clone();
    wait::eventually("the job has run", async || all().len() >= count).await;
    all()
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn runs_a_job_of_a_millisecond_each_second() {
    let Some(locks) = parent().await else { return };
    println!("\nclock {}", millis(SystemTime::now()));
    let job = locks.every("k", SECOND).ttl(long()).run(|tick| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        println!("\nrun {}", millis(tick.ends()));
    });
    job.await.expect("a job without end");
}

#[test]
fn processes_whose_clocks_are_three_seconds_apart_run_each_tick_once() {
    needs!(redis);
    needs!(server_clock);
    let server = RedisServer::start();
    let starts = |ahead: i64| {
        let clock = ServerClock::new();
        let by = Duration::from_secs(ahead.unsigned_abs());
        match ahead < 0 {
            true => clock.step_back(by),
            false => clock.step_ahead(by),
        }
        let test = "redis::schedules::runs_a_job_of_a_millisecond_each_second";
        let mut command = ChildProcess::command_of_test(test);
        command.env(SERVER, server.url());
        clock.applies_to(&mut command);
        let now = i128::try_from(millis(SystemTime::now())).expect("a time");
        let process = ChildProcess::spawn(command);
        let shown: i128 = process.tells("clock ").parse().expect("a time");
        // The process may start late, and never early.
        assert!(
            shown - now >= i128::from(ahead) * 1000,
            "its clock is another one"
        );
        assert!(ahead > 0 || shown < now, "its clock is another one");
        (process, clock)
    };
    let processes = [-3, 3, -3, 3].map(starts);
    let runs = || {
        let outputs = processes.iter().map(|(process, _)| process.output());
        let outputs: Vec<_> = outputs.collect();
        let lines = outputs.iter().flat_map(|output| output.lines());
        let runs = lines.filter_map(|line| line.strip_prefix("run "));
        runs.map(|ends| ends.parse::<u64>().expect("a time"))
            .collect::<Vec<_>>()
    };
    wait::until("the job has run in eight ticks", || runs().len() >= 8);
    let mut runs = runs();
    runs.sort_unstable();
    assert!(runs.is_sorted_by(|one, next| one < next), "{runs:?}");
}

#[tokio::test]
async fn the_key_of_a_completed_run_cools_down_until_its_tick_ends() {
    needs!(redis_7);
    let (server, locks) = served().await;
    let (runs, _job) = every(&locks, hour());
    let ran = reach(&runs, 1).await;
    let ends = || server.cli(&["PEXPIRETIME", "lockkit:k"]);
    let expected = millis(ran[0].ends() + Duration::from_micros(999)).to_string();
    wait::eventually("the key ends with its tick", async || ends() == expected).await;
    let now = time_of(&server);
    assert!(ran[0].began() <= now && now < ran[0].ends());
}

#[tokio::test]
async fn a_grant_before_its_own_tick_is_given_back() {
    needs!(redis);
    needs!(server_clock);
    let clock = ServerClock::new();
    let server = RedisServer::options().clock(&clock).start();
    let locks = manager(&server.url()).await;
    server.cli(&["SET", "lockkit:k", "stranger", "PX", "60000"]);
    let tick = 3 * SECOND;
    all_is_answered(&locks).await;
    let current = tick.next(time_of(&server));
    server.reset_stats();
    let (runs, _job) = every(&locks, tick);
    wait::eventually("the job was refused", async || {
        asked(&server).get("set") == Some(&1)
    })
    .await;
    // The process now believes that the next tick begins a second earlier than it does.
    clock.step_back(SECOND);
    server.cli(&["DEL", "lockkit:k"]);
    let ran = reach(&runs, 1).await;
    assert!(ran[0].ends() > current, "the tick in which it was refused");
    assert!(asked(&server).get("set") >= Some(&3), "it asked in between");
}

#[tokio::test]
async fn a_process_that_does_not_run_a_tick_sends_one_question_for_it() {
    needs!(redis);
    let server = RedisServer::start();
    let tick = SECOND / 2;
    let (first, second) = (manager(&server.url()).await, manager(&server.url()).await);
    let jobs = [every(&first, tick), every(&second, tick)];
    let count = || {
        jobs.iter()
            .map(|(runs, _)| runs.lock().expect("no panic").len())
            .sum::<usize>()
    };
    wait::eventually("the job runs", async || count() >= 2).await;
    let before = time_of(&server);
    server.reset_stats();
    let runs = count();
    wait::eventually("the job has run in more ticks", async || {
        count() >= runs + 5
    })
    .await;
    let sets = asked(&server).get("set").copied().unwrap_or(0);
    let passed = time_of(&server).duration_since(before).expect("later");
    let ticks = u64::try_from(passed.as_nanos() / tick.as_nanos()).expect("few") + 2;
    // Two questions, and the script of the cooldown, which writes the key and the high-water mark.
    assert!(sets <= 4 * ticks, "{sets} SET in {ticks} ticks");
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn runs_until_it_is_killed() {
    let Some(locks) = parent().await else { return };
    let run = locks.every("k", 3600 * SECOND).ttl(SECOND).run(|tick| {
        println!("\nthe tick ends {}", millis(tick.ends()));
        std::future::pending()
    });
    run.await.expect("a job without end");
}

#[tokio::test]
async fn a_run_whose_process_was_killed_is_repeated_only_by_a_process_that_comes_later() {
    needs!(redis);
    let server = RedisServer::start();
    let mut killed = process("redis::schedules::runs_until_it_is_killed", &server);
    let ends: u128 = killed.tells("the tick ends ").parse().expect("a time");
    let waits = manager(&server.url()).await;
    all_is_answered(&waits).await;
    server.reset_stats();
    let (refused, _waiting) = every(&waits, 3600 * SECOND);
    wait::eventually("the other process was refused", async || {
        asked(&server).get("set") == Some(&1)
    })
    .await;
    killed.kill();
    wait::eventually("the lock has run out", async || {
        server.get("lockkit:k").is_none()
    })
    .await;
    let late = manager(&server.url()).await;
    let (runs, _job) = every(&late, 3600 * SECOND);
    let ran = reach(&runs, 1).await;
    // At the turn of the hour both belong to the next tick.
    assert!(millis(ran[0].ends()) >= ends);
    assert!(
        refused
            .lock()
            .expect("no panic")
            .iter()
            .all(|tick| millis(tick.ends()) > ends)
    );
}

#[tokio::test]
async fn a_waiter_gets_the_key_of_a_run_that_has_outlived_its_tick() {
    needs!(redis);
    let (server, locks) = served().await;
    // The clock of the waiter stands still, so that only a push ends its wait.
    let other = LockManager::builder(&server.url()).clock(ManualClock::new());
    let other = other.connect().await.expect("a manager");
    let (ends, ended) = tokio::sync::oneshot::channel::<()>();
    let mut ended = Some(ended);
    let tick = SECOND / 5;
    let job = locks.every("k", tick).ttl(long()).run(move |_| {
        let ended = ended.take();
        async move {
            if let Some(ended) = ended {
                let _ = ended.await;
            }
        }
    });
    let job = tokio::spawn(job);
    wait::eventually("the job runs", async || server.get("lockkit:k").is_some()).await;
    let begun = time_of(&server);
    let waiter = tokio::spawn(other.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    wait::eventually("the waiter stands in the queue", async || {
        keys(&server).len() == 2
    })
    .await;
    wait::eventually("the tick is over", async || {
        time_of(&server) > begun + 2 * tick
    })
    .await;
    ends.send(()).expect("the job waits");
    let guard = timeout(wait::PATIENCE, waiter).await.expect("told");
    guard
        .expect("no panic")
        .expect("free")
        .release()
        .await
        .expect("held");
    locks.drain(wait::PATIENCE).await;
    job.await.expect("no panic").expect("no error");
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn prints_the_runs_of_a_short_job() {
    let Some(locks) = parent().await else { return };
    let job = locks.every("k", SECOND / 5).ttl(long()).run(|_| async {
        println!("\nran");
    });
    job.await.expect("a job without end");
}

#[tokio::test]
async fn a_job_goes_on_when_its_server_was_down() {
    needs!(redis);
    let server = RedisServer::start();
    let job = process("redis::schedules::prints_the_runs_of_a_short_job", &server);
    job.says("ran");
    server.kill();
    let before = job.output().matches("ran").count();
    server.start_again();
    wait::until("the job runs again", || {
        job.output().matches("ran").count() > before + 1
    });
}
