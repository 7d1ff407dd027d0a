//! A question to the store, about one key or about several at once.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::Engine;
use super::attempt::Attempt;
use crate::base::clock::Moment;
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
pub(super) fn send<'a>(
    engine: &'a Engine,
    answer: BoxFuture<'a, Outcome>,
    attempts: &'a mut [Attempt],
    patience: Duration,
) -> impl Future<Output = Result<Result<Outcome, Failure>, usize>> + 'a {
    // This comes before the look at the leases, because a drain closes them and then waits.
    for attempt in &mut *attempts {
        attempt.sending = Some(engine.keeper.open_task());
    }
    let mut question = Question {
        engine,
        overdue: attempts[0].asked + patience,
        answer,
        attempts,
        is_sent: false,
    };
    // It is no async function, which would keep its arguments twice.
    poll_fn(move |context| {
        let outcome = ready!(question.poll(context));
        for attempt in &mut *question.attempts {
            attempt.lease.forget_waker(attempt.waker.take());
        }
        Poll::Ready(match outcome {
            Ok(outcome) => Ok(noted(outcome, question.attempts, patience)),
            Err(at) => Err(at),
        })
    })
}

struct Question<'a> {
    engine: &'a Engine,
    answer: BoxFuture<'a, Outcome>,
    attempts: &'a mut [Attempt],
    overdue: Moment,
    is_sent: bool,
}

impl Question<'_> {
    /// Resolves to the answer, or to `None` when it is overdue.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Outcome>, usize>> {
        // A question that was undone must not be sent.
        if let Some(at) = displaced(self.attempts) {
            return Poll::Ready(Err(at));
        }
        if let Poll::Ready(outcome) = self.answer.as_mut().poll(context) {
            return Poll::Ready(Ok(Some(outcome)));
        }
        // The first poll sends the request, so it reads no clock.
        let sent_before = std::mem::replace(&mut self.is_sent, true);
        if !sent_before {
            if let Some(at) = displaced(self.attempts) {
                return Poll::Ready(Err(at));
            }
            self.attempts.iter_mut().for_each(|one| one.sending = None);
        }
        for attempt in &mut *self.attempts {
            let waker = &mut attempt.waker;
            attempt.lease.wake_on_change(waker, context.waker());
        }
        match sent_before && self.engine.now() >= self.overdue {
            true => Poll::Ready(Ok(None)),
            false => Poll::Pending,
        }
    }
}

/// Notes an answer, or that there was none in time.
fn noted(
    outcome: Option<Outcome>,
    attempts: &mut [Attempt],
    patience: Duration,
) -> Result<Outcome, Failure> {
    for attempt in &mut *attempts {
        if !attempt.lease.is_closed() {
            attempt.sending = None;
        }
        attempt.in_flight = false;
    }
    let (answer, may_arrive) = match outcome {
        Some(Outcome::Repeated(outcome)) => (Some(*outcome), true),
        None => (None, true),
        outcome => (outcome, false),
    };
    let answer = match answer {
        Some(Outcome::Failed(failure)) => Err(failure),
        Some(outcome) => Ok(outcome),
        None => {
            let text = format!("the store gave no answer within {patience:?}");
            Err(Failure::unanswered(text))
        }
    };
    if let Err(failure) = &answer {
        attempts
            .iter_mut()
            .for_each(|one| one.known |= failure.queued);
    }
    let is_ambiguous = answer.as_ref().is_err_and(|failure| failure.ambiguous);
    if may_arrive || is_ambiguous {
        attempts.iter_mut().for_each(Attempt::may_arrive_late);
    }
    answer
}

fn displaced(attempts: &[Attempt]) -> Option<usize> {
    attempts.iter().position(|one| one.lease.is_closed())
}
