//! The stack that a call needs.
//!
//! Tests are built without optimization, so that a value is copied into each frame through which it
//! moves.
//!
//! A stack overflow aborts the process, so each attempt runs in its own process.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::thread;

use lock_core::{Error, LockManager, distributed_lock};

/// The variable with `<call> <bytes>`, the child's call and its stack.
const ATTEMPT: &str = "LOCK_TESTS_STACK";

const KIB: usize = 1024;

/// The step between two stack sizes, in bytes.
const STEP: usize = 16 * KIB;

/// The stack that the attribute may need for itself.
const OWN: usize = 128 * KIB;

/// The large buffer of a body that reads a file.
macro_rules! work {
    ($size:expr) => {{
        let local = [1_u8; $size];
        tokio::task::yield_now().await;
        black_box(&local);
        Ok(())
    }};
}

async fn plain_small() -> Result<(), Error> {
    work!(1)
}

#[distributed_lock(key = "small", ttl = "10s")]
async fn annotated_small() -> Result<(), Error> {
    work!(1)
}

async fn plain_large() -> Result<(), Error> {
    work!(100 * KIB)
}

#[distributed_lock(key = "large", ttl = "10s")]
async fn annotated_large() -> Result<(), Error> {
    work!(100 * KIB)
}

#[distributed_lock(key = "outer", ttl = "10s", cooldown = "1s", guard = lock)]
#[distributed_lock(key = "inner", ttl = "10s", max_hold = "5s", release = background)]
async fn annotated_twice() -> Result<(), Error> {
    let fence = lock.fencing_token();
    black_box(fence);
    work!(100 * KIB)
}

type Page = [u8; 16 * KIB];

async fn plain_argument(page: Page) -> Result<(), Error> {
    tokio::task::yield_now().await;
    black_box(&page);
    Ok(())
}

#[distributed_lock(key = "argument:<page[0]>", ttl = "10s")]
async fn annotated_argument(page: Page) -> Result<(), Error> {
    tokio::task::yield_now().await;
    black_box(&page);
    Ok(())
}

async fn run_large(locks: LockManager) -> Result<(), Error> {
    locks.lock("run").run(plain_large()).await?
}

async fn run_with_large(locks: LockManager) -> Result<(), Error> {
    locks.lock("run").run_with(|_| plain_large()).await?
}

type Call = fn(LockManager);

/// The calls, each in its own function because each needs its own frame.
const CALLS: [(&str, Call); 9] = [
    ("plain_small", |_| finish(plain_small())),
    ("annotated_small", |_| finish(annotated_small())),
    ("plain_large", |_| finish(plain_large())),
    ("annotated_large", |_| finish(annotated_large())),
    ("annotated_twice", |_| finish(annotated_twice())),
    ("plain_argument", |_| finish(plain_argument([1; 16 * KIB]))),
    ("annotated_argument", |_| {
        finish(annotated_argument([1; 16 * KIB]));
    }),
    ("run_large", |locks| finish(run_large(locks))),
    ("run_with_large", |locks| finish(run_with_large(locks))),
];

fn finish(call: impl Future<Output = Result<(), Error>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(pin!(call)).expect("the call succeeds");
}

#[test]
#[ignore = "a process that other tests start"]
fn an_attempt() {
    let Ok(attempt) = std::env::var(ATTEMPT) else {
        return;
    };
    let (name, size) = attempt.split_once(' ').expect("a call and a size");
    let call = CALLS.into_iter().find(|(call, _)| *call == name);
    let (_, call) = call.expect("one of the calls");
    let locks = LockManager::in_memory();
    locks.install().expect("nothing is installed yet");
    let stack = thread::Builder::new().stack_size(size.parse().expect("a number"));
    let thread = stack.spawn(move || call(locks)).expect("a thread");
    thread.join().expect("the call returns");
}

fn fits(call: &str, size: usize) -> bool {
    let child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "stack::an_attempt", "--ignored"])
        .env(ATTEMPT, format!("{call} {size}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    child.expect("the child runs").success()
}

/// Returns the smallest stack in bytes on which the call returns, to the next `STEP`.
fn least_stack(call: &str) -> usize {
    let (mut too_small, mut enough) = (0, 8 * KIB * KIB / STEP);
    assert!(fits(call, enough * STEP), "{call} does not return");
    while enough - too_small > 1 {
        let size = usize::midpoint(too_small, enough);
        if fits(call, size * STEP) {
            enough = size;
        } else {
            too_small = size;
        }
    }
    enough * STEP
}

#[track_caller]
fn needs_no_more_than(call: &str, plain: &str) {
    let (needed, without) = (least_stack(call), least_stack(plain));
    assert!(
        needed <= without + OWN,
        "{call} needs {} KiB of stack, {plain} {} KiB",
        needed / KIB,
        without / KIB,
    );
}

#[test]
fn a_large_body_needs_little_more_stack_than_without_the_attribute() {
    needs_no_more_than("annotated_small", "plain_small");
    needs_no_more_than("annotated_large", "plain_large");
    needs_no_more_than("annotated_twice", "plain_large");
}

#[test]
fn a_large_body_that_is_run_needs_little_more_stack_than_by_itself() {
    needs_no_more_than("run_large", "plain_large");
    needs_no_more_than("run_with_large", "plain_large");
}

#[test]
fn a_large_argument_needs_little_more_stack_than_without_the_attribute() {
    needs_no_more_than("annotated_argument", "plain_argument");
}
