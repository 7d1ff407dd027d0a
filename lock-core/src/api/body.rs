//! The body that runs under a lock: its arguments, its future and its output, on the heap.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::api::handle::LockHandle;

/// Keeps a body on the heap, because only a pointer then moves through `run`.
///
/// Unoptimized code copies a value into every frame through which it moves. The copies of a large
/// body would overflow a worker thread's stack.
pub struct Body<C, F: Future>(Box<Stage<C, F>>);

enum Stage<C, F: Future> {
    /// The body's arguments, until the lock is held.
    Waiting(C),
    Made(Pin<Box<F>>),
    /// The output. The future is dropped, but the lock may not be released yet.
    Ended(F::Output),
    Empty,
}

impl<C, F> Body<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    pub(crate) fn new(make: C) -> Self {
        Self(Box::new(Stage::Waiting(make)))
    }

    /// Makes the future, if it is not made yet.
    ///
    /// The function is not inlined, so that its frame is gone when the future is polled.
    #[inline(never)]
    pub(crate) fn start(&mut self, lock: LockHandle) {
        *self.0 = match self.replace(Stage::Empty) {
            Stage::Waiting(make) => Stage::Made(Box::pin(make(lock))),
            made => made,
        };
    }
}

impl<C, F: Future> Body<C, F> {
    pub(crate) fn made(future: F) -> Self {
        Self(Box::new(Stage::Made(Box::pin(future))))
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<F::Output> {
        match &mut *self.0 {
            Stage::Made(future) => future.as_mut().poll(context),
            _ => unreachable!("only a body that was started is polled"),
        }
    }

    /// Drops the future, and then keeps its output.
    #[inline(never)]
    pub(crate) fn end(&mut self, output: F::Output) {
        *self.0 = Stage::Ended(output);
    }

    #[inline(never)]
    pub(crate) fn discard(&mut self) {
        *self.0 = Stage::Empty;
    }

    #[inline(never)]
    pub(crate) fn take_output(&mut self) -> F::Output {
        match self.replace(Stage::Empty) {
            Stage::Ended(output) => output,
            _ => unreachable!("the output is taken once, when the body has ended"),
        }
    }

    fn replace(&mut self, stage: Stage<C, F>) -> Stage<C, F> {
        mem::replace(&mut *self.0, stage)
    }
}

impl<C, F: Future> fmt::Debug for Body<C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}
