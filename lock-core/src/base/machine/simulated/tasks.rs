//! Tasks whose output others wait for.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::living_world;

/// The output of a task that was ended, or whose process was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a simulation uses it")]
pub struct Lost;

/// A task that runs. It runs on when this value is dropped.
#[derive(Debug)]
pub struct JoinHandle<T> {
    task: u64,
    output: oneshot::Receiver<T>,
}

impl<T: Send + 'static> JoinHandle<T> {
    pub(super) fn start<F>(runtime: u64, future: F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (tell, output) = oneshot::channel();
        let task = async move {
            let _ = tell.send(future.await);
        };
        // Without a world the task is dropped, as by a runtime that has ended.
        let task = living_world().map_or(0, |world| world.spawn(runtime, Box::pin(task)));
        Self { task, output }
    }
}

impl<T> JoinHandle<T> {
    /// Ends the task at its next step.
    pub fn abort(&self) {
        if let Some(world) = living_world() {
            world.abort(self.task);
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Lost>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.output).poll(context).map_err(|_| Lost)
    }
}

/// Tasks that end with this value.
pub struct JoinSet<T> {
    tasks: Vec<JoinHandle<T>>,
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self { tasks: Vec::new() }
    }
}

impl<T: Send + 'static> JoinSet<T> {
    /// Starts a task on the runtime of the task that runs.
    pub fn spawn<F>(&mut self, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.tasks.push(super::ambient::spawn(future));
    }

    /// Returns the output of a task that has ended.
    pub fn try_join_next(&mut self) -> Option<Result<T, Lost>> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match self.poll_next(&mut context) {
            Poll::Ready(done) => done,
            Poll::Pending => None,
        }
    }

    /// Waits for the output of a task; `None` without a task.
    pub async fn join_next(&mut self) -> Option<Result<T, Lost>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, Lost>>> {
        if self.tasks.is_empty() {
            return Poll::Ready(None);
        }
        for at in 0..self.tasks.len() {
            if let Poll::Ready(done) = Pin::new(&mut self.tasks[at]).poll(context) {
                drop(self.tasks.remove(at));
                return Poll::Ready(Some(done));
            }
        }
        Poll::Pending
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet")
            .field("tasks", &self.tasks.len())
            .finish()
    }
}
