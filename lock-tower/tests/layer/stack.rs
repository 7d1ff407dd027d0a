//! The stack that a request needs. In an unoptimized build, as in tests, a value is copied into
//! each frame that it is moved through.
//!
//! An overflow of the stack aborts the process, so each attempt runs in its own process.

use std::convert::Infallible;
use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::process::{Command, Stdio};
use std::task::{Context, Poll};
use std::thread;

use http::{Request, Response};
use lock_core::LockManager;
use lock_tower::LockLayer;
use tower::{Layer, Service};

/// `<method> <bytes>`: the request that the child process sends, and the size of its stack.
const ATTEMPT: &str = "LOCK_TESTS_STACK";

const KIB: usize = 1024;

/// The step between two measured sizes, in bytes.
const STEP: usize = 16 * KIB;

/// A service whose future is large.
#[derive(Clone)]
struct Large;

struct Work {
    buffer: [u8; 100 * KIB],
    polled: bool,
}

impl Service<Request<String>> for Large {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Work;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<String>) -> Work {
        Work {
            buffer: [1; 100 * KIB],
            polled: false,
        }
    }
}

impl Future for Work {
    type Output = Result<Response<String>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.polled {
            self.polled = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        black_box(&self.buffer);
        Poll::Ready(Ok(Response::new(String::new())))
    }
}

fn finish<S>(mut service: S, method: &str)
where
    S: Service<Request<String>>,
    S::Error: std::fmt::Debug,
{
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    let request = Request::builder().method(method).body(String::new());
    let request = request.expect("a request");
    let answer = runtime.block_on(pin!(async move { service.call(request).await }));
    answer.expect("an answer");
}

fn without_the_layer() {
    finish(Large, "POST");
}

fn with_the_layer(method: &str) {
    let layer = LockLayer::template(LockManager::in_memory(), "k:<method>");
    finish(layer.expect("a template").layer(Large), method);
}

#[test]
#[ignore = "a process that another test starts"]
fn an_attempt() {
    let Ok(attempt) = std::env::var(ATTEMPT) else {
        return;
    };
    let (method, size) = attempt.split_once(' ').expect("a method and a size");
    let method = method.to_owned();
    let stack = thread::Builder::new().stack_size(size.parse().expect("a number"));
    let thread = stack.spawn(move || match method.as_str() {
        "-" => without_the_layer(),
        method => with_the_layer(method),
    });
    thread.expect("a thread").join().expect("an answer");
}

fn fits(method: &str, size: usize) -> bool {
    let child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "stack::an_attempt", "--ignored"])
        .env(ATTEMPT, format!("{method} {size}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    child.expect("the child runs").success()
}

/// Returns the smallest stack on which the request is answered, in bytes, rounded up to a `STEP`.
fn least_stack(method: &str) -> usize {
    let (mut too_small, mut enough) = (0, 8 * KIB * KIB / STEP);
    assert!(fits(method, enough * STEP), "{method} is not answered");
    while enough - too_small > 1 {
        let size = usize::midpoint(too_small, enough);
        if fits(method, size * STEP) {
            enough = size;
        } else {
            too_small = size;
        }
    }
    enough * STEP
}

#[test]
fn a_large_handler_needs_little_more_stack_than_without_the_layer() {
    let without = least_stack("-");
    for method in ["POST", "GET"] {
        let needed = least_stack(method);
        assert!(
            needed <= without + 64 * KIB,
            "{method} needs {} KiB of stack, {} KiB without the layer",
            needed / KIB,
            without / KIB,
        );
    }
}
