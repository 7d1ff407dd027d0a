//! Timers on the clock of a simulated process.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use super::{living_world, world};

/// Ends when the clock of the process shows its time.
#[derive(Debug)]
pub struct Sleep {
    at: u64,
    timer: Option<u64>,
}

pub(crate) fn sleep(span: Duration) -> Sleep {
    let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    Sleep {
        at: world().now().saturating_add(span),
        timer: None,
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let world = world();
        if let Some(timer) = self.timer.take() {
            world.clear_timer(timer);
        }
        if world.now() >= self.at {
            return Poll::Ready(());
        }
        self.timer = Some(world.set_timer(self.at, context.waker()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer
            && let Some(world) = living_world()
        {
            world.clear_timer(timer);
        }
    }
}

/// The time of a [`timeout`] is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a simulation uses it")]
pub struct Elapsed;

pub(crate) async fn timeout<F: Future>(span: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    let mut sleep = pin!(sleep(span));
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        sleep.as_mut().poll(context).map(|()| Err(Elapsed))
    })
    .await
}
