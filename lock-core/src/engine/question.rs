//! A question to the store, about one key or about several at once.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::Engine;
use super::attempt::Attempt;
use crate::store::{BoxFuture, Failure, Outcome};

/// Sends a question and waits at most `patience` for its answer.
///
/// `answer` sends the question when it is polled first. `attempts` has one for each key, and each was noted as asked. They note
/// whether the question, or a copy of it, may still arrive.
///
/// # Errors
///
/// The attempt with this index is undone: the manager drains, or another task has taken the turn for its key, because this task
/// was not polled. The question may be in flight, and is undone too.
pub(super) async fn send(
    engine: &Engine,
    mut answer: BoxFuture<'_, Outcome>,
    attempts: &mut [Attempt],
    patience: Duration,
) -> Result<Result<Outcome, Failure>, usize> {
    let sent = attempts[0].asked;
    let mut is_sent = false;
    // This comes before the look at the leases, because a drain closes them and then waits.
    for attempt in &mut *attempts {
        attempt.sending = Some(engine.keeper.open_task());
    }
    let outcome = poll_fn(|context| {
        // A question that was undone must not be sent.
        if let Some(at) = displaced(attempts) {
            return Poll::Ready(Err(at));
        }
        if let Poll::Ready(outcome) = answer.as_mut().poll(context) {
            return Poll::Ready(Ok(Some(outcome)));
        }
        // The first poll sends the request, so it reads no clock.
        let sent_before = std::mem::replace(&mut is_sent, true);
        if !sent_before {
            if let Some(at) = displaced(attempts) {
                return Poll::Ready(Err(at));
            }
            attempts.iter_mut().for_each(|one| one.sending = None);
        }
        for attempt in &mut *attempts {
            let waker = &mut attempt.waker;
            attempt.lease.wake_on_change(waker, context.waker());
        }
        if sent_before && engine.now() >= sent + patience {
            Poll::Ready(Ok(None))
        } else {
            Poll::Pending
        }
    })
    .await;
    for attempt in &mut *attempts {
        attempt.lease.forget_waker(attempt.waker.take());
    }
    let outcome = outcome?;
    for attempt in &mut *attempts {
        if !attempt.lease.is_closed() {
            attempt.sending = None;
        }
        attempt.in_flight = false;
    }
    let (outcome, may_arrive) = match outcome {
        Some(Outcome::Repeated(outcome)) => (Some(*outcome), true),
        outcome => (outcome, false),
    };
    let (answer, may_arrive) = match outcome {
        Some(Outcome::Failed(failure)) => {
            let ambiguous = may_arrive || failure.ambiguous;
            attempts
                .iter_mut()
                .for_each(|one| one.known |= failure.queued);
            (Err(failure), ambiguous)
        }
        Some(outcome) => (Ok(outcome), may_arrive),
        None => {
            let text = format!("the store gave no answer within {patience:?}");
            (Err(Failure::unanswered(text)), true)
        }
    };
    if may_arrive {
        attempts.iter_mut().for_each(Attempt::may_arrive_late);
    }
    Ok(answer)
}

fn displaced(attempts: &[Attempt]) -> Option<usize> {
    attempts.iter().position(|one| one.lease.is_closed())
}
