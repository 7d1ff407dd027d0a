//! Questions of an operator to the processes that hold locks.
//!
//! The store knows until when a key is taken, and the process that holds it knows since when. So an operator's manager
//! asks that process by a message, for [`PATIENCE`]. A process that is stopped, or whose runtime is blocked, does not
//! answer. An answer changes nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Engine;
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::holder_token::HolderToken;
use crate::base::machine::timeout;
use crate::base::sync::lock;
use crate::store::{
    Answer, Failure, Held, Lane, Operation, OperatorOperation, OperatorOutcome, Outcome, Question,
    Told,
};

/// How long a holder may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inquiry {
    Holds(Held),
    /// The process runs, and does not hold the key any more.
    Ended,
    Silent,
    /// No process listens at the holder's address.
    Gone,
}

/// The questions that are open.
#[derive(Default)]
pub(crate) struct Inquiries(Mutex<Open>);

#[derive(Default)]
struct Open {
    last: u64,
    answers: HashMap<u64, oneshot::Sender<Option<Held>>>,
}

impl Inquiries {
    /// Delivers an answer. One that is late or of a question that was never asked is dropped.
    pub(super) fn answered(&self, number: u64, held: Option<Held>) {
        let answer = lock(&self.0).answers.remove(&number);
        if let Some(answer) = answer {
            let _ = answer.send(held);
        }
    }

    fn open(&self) -> (u64, oneshot::Receiver<Option<Held>>) {
        let (send, receive) = oneshot::channel();
        let mut open = lock(&self.0);
        open.last += 1;
        let number = open.last;
        open.answers.insert(number, send);
        (number, receive)
    }
}

/// One open question. It is closed when this is dropped, so that questions without an answer leave nothing.
struct OpenInquiry<'a>(&'a Inquiries, u64);

impl Drop for OpenInquiry<'_> {
    fn drop(&mut self) {
        lock(&self.0.0).answers.remove(&self.1);
    }
}

impl Engine {
    /// Runs an operator's question or order.
    pub(crate) async fn operate(
        &self,
        operation: OperatorOperation,
    ) -> Result<OperatorOutcome, Failure> {
        match self.answer_to(Operation::Operator(operation)).await? {
            Outcome::Operator(outcome) => Ok(outcome),
            _ => Err(Failure::not_understood()),
        }
    }

    /// Sends an operation once, and waits for its answer.
    pub(crate) async fn answer_to(&self, operation: Operation) -> Result<Outcome, Failure> {
        let end = self.now() + self.operation_timeout;
        let answer = self.store.execute(operation, Lane::of_this_task());
        match self.timers.before(end, answer).await {
            Some(Outcome::Failed(failure)) => Err(failure),
            Some(outcome) => Ok(outcome),
            None => Err(Failure::unanswered("the store gave no answer in time")),
        }
    }

    /// Asks the process of a holder until `overdue`.
    pub(crate) async fn inquire(
        &self,
        key: &Arc<str>,
        holder: &HolderToken,
        overdue: Moment,
    ) -> Inquiry {
        let (number, answer) = self.inquiries.open();
        let open = OpenInquiry(&self.inquiries, number);
        let ask = OperatorOperation::Ask(Question {
            key: Arc::clone(key),
            holder: holder.clone(),
            reply_to: self.tokens.manager(),
            number,
        });
        let asked = self.timers.before(overdue, self.operate(ask)).await;
        if let Some(Ok(OperatorOutcome::Told(Told::NoReceiver))) = asked {
            return Inquiry::Gone;
        }
        let answer = self.timers.before(overdue, answer).await;
        drop(open);
        match answer {
            Some(Ok(Some(held))) => Inquiry::Holds(held),
            Some(Ok(None)) => Inquiry::Ended,
            Some(Err(_)) | None => Inquiry::Silent,
        }
    }

    /// Answers an operator's question about a key.
    pub(super) fn answer(self: &Arc<Self>, question: Question) {
        let lease = self.queue.held_by(&question.key, &question.holder);
        let held = lease
            .filter(|lease| self.is_valid(lease))
            .and_then(|lease| {
                Some(Held {
                    held_for: lease.held_for(),
                    fence: lease.fence()?,
                })
            });
        let answer = Operation::Operator(OperatorOperation::Answer(Answer {
            key: question.key,
            to: question.reply_to,
            number: question.number,
            held,
        }));
        let (store, patience) = (Arc::clone(&self.store), self.operation_timeout);
        self.keeper.run(Box::pin(async move {
            // The operator does not wait for longer, and asks again if it wants to know.
            let _ = timeout(patience, store.execute(answer, Lane::KEEPER)).await;
        }));
    }
}

/// The error of an operator's question or order that failed.
pub(crate) fn error_of(failure: Failure, key: &Arc<str>) -> Error {
    failure.error.with_key(key)
}
