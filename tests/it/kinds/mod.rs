//! Tests all kinds of locks together: processes that take them at random, are killed, and lose locks by force.
//!
//! `LOCK_TESTS_STORM` sets the seconds.

pub(crate) mod ledger;
mod stage;
mod worker;

use std::time::{Duration, Instant};

use lock_core::operator::Forced;
use lock_core::{ErrorKind, LockManager};
use lock_tests::{ChildProcess, needs, wait};

use self::ledger::Ledger;
use self::stage::{Kind, Stage};
use crate::dice::Dice;
use crate::steps::long;

const SERVER: &str = "LOCK_TESTS_STORM_SERVER";
const STAGE: &str = "LOCK_TESTS_STORM_STAGE";
const FOLDER: &str = "LOCK_TESTS_STORM_FOLDER";
const SEED: &str = "LOCK_TESTS_STORM_SEED";

const PROCESSES: u64 = 8;
/// A storm with fewer claims is none.
const CLAIMS: usize = 100;
const KEYS: [&str; 7] = ["k0", "k1", "k2", "k3", "p0", "p1", "p2"];

fn span() -> Duration {
    let seconds = std::env::var("LOCK_TESTS_STORM");
    Duration::from_secs(seconds.map_or(6, |seconds| seconds.parse().expect("seconds")))
}

fn start(stage: &Stage, folder: &tempfile::TempDir, seed: u64) -> ChildProcess {
    let test = "kinds::worker::works_until_it_is_killed_or_told_to_stop";
    let variables = [
        (SERVER, &*stage.urls()),
        (STAGE, &format!("{:?}", stage.kind)),
        (FOLDER, folder.path().to_str().expect("a name")),
        (SEED, &seed.to_string()),
    ];
    ChildProcess::of_test(test, &variables)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_take_locks_of_all_kinds_and_are_killed_keep_every_promise() {
    needs!(redis);
    storm(Kind::Kills).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_are_stopped_and_killed_while_they_wait_keep_every_promise() {
    needs!(redis);
    storm(Kind::Stops).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_are_killed_keep_every_promise_over_servers_that_hang_in_turn() {
    needs!(redis);
    storm(Kind::Hangs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_are_killed_keep_every_promise_in_a_cluster_whose_slots_move_all_the_time() {
    needs!(redis);
    storm(Kind::Moves).await;
}

async fn storm(kind: Kind) {
    let mut stage = tokio::task::spawn_blocking(move || Stage::of(kind));
    let mut stage = (&mut stage).await.expect("no panic");
    let folder = tempfile::tempdir().expect("a folder");
    let seed = std::env::var("LOCK_TESTS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(7);
    let mut dice = Dice::of(&[seed]);
    let locks = kind.manager(&stage.urls()).await;
    let mut processes: Vec<_> = (0..PROCESSES)
        .map(|number| start(&stage, &folder, seed * 1_000 + number))
        .collect();
    let claims = || Ledger::open(folder.path()).judged().0;
    let end = Instant::now() + span();
    // On a busy machine the storm goes on until it is one.
    let overdue = end + wait::PATIENCE;
    let (mut killed, mut forced) = (0, 0);
    while Instant::now() < end || (claims() <= CLAIMS && Instant::now() < overdue) {
        tokio::time::sleep(Duration::from_millis(dice.between(50, 250))).await;
        if killed == 0 || dice.percent(kind.deaths()) {
            let victim = dice.index(processes.len());
            assert!(
                processes[victim].is_running(),
                "{}",
                processes[victim].output()
            );
            processes[victim].kill();
            killed += 1;
            processes[victim] = start(&stage, &folder, seed * 1_000 + PROCESSES + killed);
        } else if !stage.disturbs(&mut processes, &mut dice).await {
            forced += frees_one(&locks, &mut dice).await;
        }
    }
    std::fs::write(folder.path().join("stop"), "").expect("a file");
    let disturbed = tokio::task::block_in_place(|| stage.calms_down());
    let (mut granted, mut longest) = (0, 0);
    for mut process in processes {
        let line = process.line(wait::PATIENCE * 4, |line| line.ends_with(" granted"));
        let line = line.unwrap_or_else(|| panic!("a process failed:\n{}", process.output()));
        let numbers = line.split(' ').filter_map(|word| word.parse::<u64>().ok());
        let [longest_there, granted_there] = numbers.collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        longest = longest.max(longest_there);
        granted += granted_there;
        process.wait(wait::PATIENCE);
    }
    let (claims, wrong) = Ledger::open(folder.path()).judged();
    println!(
        "{kind:?}, seed {seed}: {claims} claims, {granted} grants, {killed} killed, {forced} freed by force, \
         {disturbed} disturbances, longest wait {longest} ms"
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(claims > CLAIMS && killed > 0, "the storm was none");
    // The leases of killed processes run out, and no key, queue or set is left.
    let is_clean = async || stage.left().is_empty();
    wait::eventually("no key is left", is_clean).await;
    for key in KEYS {
        let guard = locks.lock(key).ttl(long()).try_acquire().await;
        assert!(guard.expect("an answer").is_some(), "{key} is free");
    }
}

/// Frees one holder of some key, if it has one. Returns how many were freed.
async fn frees_one(locks: &LockManager, dice: &mut Dice) -> u64 {
    let key = dice.one_of(&KEYS);
    let operator = locks.operator("the storm");
    let freed = async {
        let seen = operator.inspect(key).await?;
        if seen.holders().is_empty() {
            return Ok(Forced::Changed);
        }
        let holder = &seen.holders()[dice.index(seen.holders().len())];
        operator.force(holder).because("the storm").await
    };
    match freed.await {
        Ok(forced) => u64::from(forced != Forced::Changed),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            0
        }
    }
}
