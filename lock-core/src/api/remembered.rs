//! Runs the body of an `#[idempotent]` function, or returns the result of an earlier call.
//!
//! The result is the record that the release of the lock leaves in the key. So a call meets either a free key and runs, or
//! a run in flight, or its result; and a call that waits for the lock gets the result as soon as it exists.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::api::body::Body;
use crate::api::handle::LockHandle;
use crate::api::ownership::enter_from_outside;
use crate::api::request::LockRequest;
use crate::api::run::Run;
use crate::base::BoxFuture;
use crate::base::error::Error;
use crate::base::record::RecordOutcome;
use crate::remembered::Memory;

/// A record takes the place of the lock, so a run that was entered could leave none.
const INSIDE: &str = "the call would wait for its own result, because the calling code already holds the lock of this \
                      key; an `#[idempotent]` function neither calls itself with the same key, nor runs under another \
                      lock of its key";

/// Runs the body once for the key, and remembers its result.
pub fn remembered<C, F>(
    request: LockRequest,
    memory: Memory<F::Output>,
    body: Body<C, F>,
) -> Remembered<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    let (on_lost, release) = (request.on_lost, request.release);
    let checked = request.spec().and_then(|spec| {
        let checked = memory.check();
        let checked = checked.and_then(|()| memory.check_lifetime(spec.engine.max_ttl));
        checked.map_err(|error| error.with_key(&spec.key))?;
        Ok(spec)
    });
    let acquiring: BoxFuture<'static, _> = match checked {
        Ok(spec) => Box::pin(enter_from_outside(spec, INSIDE)),
        Err(error) => Box::pin(std::future::ready(Err(error))),
    };
    Remembered {
        run: Run::new(acquiring, body, |_| true, on_lost, release),
        memory,
        lock: None,
    }
}

/// The future of [`remembered`].
#[must_use = "futures do nothing unless polled"]
pub struct Remembered<C, F: Future> {
    run: Run<C, F>,
    memory: Memory<F::Output>,
    /// The lock that leaves a record.
    lock: Option<LockHandle>,
}

impl<C, F> Future for Remembered<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    type Output = Result<F::Output, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { run, memory, lock } = self.get_mut();
        let ended = run.poll_run(
            &mut |ownership, result| {
                if let Some(record) = memory.record_of(result) {
                    let kept = lock.insert(ownership.handle());
                    leave(kept, record, memory);
                }
                true
            },
            context,
        );
        Poll::Ready(match ready!(ended) {
            Ok(result) => {
                if let Some(lock) = lock {
                    report(lock, memory.function);
                }
                Ok(result)
            }
            Err(error) => memory.recall(error),
        })
    }
}

/// Tells the lock what its release leaves behind.
fn leave<R>(lock: &LockHandle, record: Vec<u8>, memory: &Memory<R>) {
    // The record takes the place of the cooldown, which counts if the record cannot be left.
    lock.cooldown(memory.lifetime);
    if let Err(error) = lock.remember(record, memory.lifetime) {
        tracing::warn!(function = memory.function, %error, "a result cannot be kept");
    }
}

/// Reports a result that is not kept although its work is done.
fn report(lock: &LockHandle, function: &'static str) {
    let reason = match lock.record_outcome() {
        Some(RecordOutcome::Lost) => "the lock was lost before the release",
        Some(RecordOutcome::Failed) => "the store has refused the record",
        _ => return,
    };
    tracing::warn!(
        function,
        reason,
        "the result of an `#[idempotent]` function was not kept, so a later call runs the function again"
    );
}

impl<C, F: Future> fmt::Debug for Remembered<C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remembered")
            .field("run", &self.run)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}
