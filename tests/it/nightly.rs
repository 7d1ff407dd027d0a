//! Runs the example `nightly` as processes, as machines do.

use std::process::Command;

use lock_tests::{ChildProcess, Port, RedisServer, example, needs, wait};

/// Starts the job with more steps than any test waits for, or with as many as are given.
fn start(redis: &str, steps: u32) -> ChildProcess {
    let mut command = Command::new(example("nightly"));
    command.arg(steps.to_string()).env("REDIS_URL", redis);
    ChildProcess::spawn(command)
}

const ENDLESS: u32 = 1_000_000;

#[track_caller]
fn works(job: &ChildProcess) {
    let step = job.line(wait::PATIENCE, |line| line.starts_with("step 1 of"));
    assert!(step.is_some(), "the job begins:\n{}", job.output());
}

/// Checks the exit code and the last words of a process.
#[track_caller]
fn ended(mut job: ChildProcess, code: i32, words: &str) {
    let status = job.wait(wait::PATIENCE).expect("an end");
    let line = job.line(wait::PATIENCE, |line| line.contains(words));
    assert!(line.is_some(), "no {words:?}:\n{}", job.output());
    assert_eq!(status.code(), Some(code), "{}", job.output());
}

#[test]
fn the_nightly_job_runs_on_one_machine_and_once_a_night() {
    needs!(redis);
    let server = RedisServer::start();
    let first = start(&server.url(), 5);
    works(&first);
    let second = start(&server.url(), 5);
    let says = second.line(wait::PATIENCE, |line| line.starts_with("nightly:"));
    assert!(says.is_some(), "{}", second.output());
    assert!(!second.output().contains("step 1 of"));
    ended(second, 75, "nothing to do");
    ended(first, 0, "nightly: done");
    ended(start(&server.url(), 5), 75, "done already");
}

#[test]
fn a_nightly_job_that_is_terminated_leaves_its_lock_to_the_next_machine() {
    needs!(redis);
    let server = RedisServer::start();
    let first = start(&server.url(), ENDLESS);
    works(&first);
    first.terminate();
    ended(first, 143, "stopped by signal 15");
    assert_eq!(server.cli(&["EXISTS", "lockkit:nightly"]), "0");
    ended(start(&server.url(), 1), 0, "nightly: done");
}

#[test]
fn a_nightly_job_that_loses_its_lock_stops() {
    needs!(redis);
    let server = RedisServer::start();
    let job = start(&server.url(), ENDLESS);
    works(&job);
    server.cli(&["SET", "lockkit:nightly", "another machine"]);
    ended(job, 70, "the job was stopped");
    assert_eq!(server.cli(&["GET", "lockkit:nightly"]), "another machine");
}

#[test]
fn a_nightly_job_does_not_begin_without_its_redis() {
    let nothing = Port::free();
    let url = format!("redis://{}", nothing.address());
    ended(start(&url, 1), 69, "the job did not begin");
    ended(start("redis:/wrong", 1), 78, "a setting is wrong");
}
