//! What an operator sees and does.

use std::sync::Arc;

use super::driver::{CellStore, guess_of};
use super::{Cells, PASSES, message};
use crate::protocol::{Ended, Operation as Step, Reply};
use crate::store::steps::{inspected, order_of};
use crate::store::{Failure, Force, Forced, Inspected, OperatorOperation, OperatorOutcome, Told};

impl<C: Cells> CellStore<C> {
    pub(super) async fn operate(
        &self,
        operation: &OperatorOperation,
    ) -> Result<OperatorOutcome, Failure> {
        Ok(match operation {
            OperatorOperation::Inspect(inspect) => {
                OperatorOutcome::Inspected(Box::new(self.inspect(&inspect.key).await?))
            }
            OperatorOperation::Force(force) => OperatorOutcome::Forced(self.force(force).await?),
            OperatorOperation::Scan(scan) => {
                let after = scan.from.after.clone();
                OperatorOutcome::Scanned(self.cells.list(scan.pattern.clone(), after).await?)
            }
            OperatorOperation::ReadCard(name) => {
                OperatorOutcome::Card(self.card(name.text.as_ref().into()).await?)
            }
            // The store writes its own.
            OperatorOperation::WriteCard(..) => OperatorOutcome::Told(Told::Maybe),
            OperatorOperation::Ask(question) => {
                let Some(to) = question.holder.address() else {
                    return Ok(OperatorOutcome::Told(Told::NoReceiver));
                };
                let text = message::of_question(question);
                OperatorOutcome::Told(self.cells.send(to, text).await?)
            }
            OperatorOperation::Answer(answer) => {
                let text = message::of_answer(answer);
                OperatorOutcome::Told(self.cells.send(answer.to, text).await?)
            }
        })
    }

    async fn inspect(&self, key: &Arc<str>) -> Result<Inspected, Failure> {
        let read = self.cells.read(std::slice::from_ref(key)).await?;
        let guess = guess_of(read.stored.into_iter().next().flatten())?;
        let mut document = guess.cell.document.clone();
        let millis = read.now.0 / 1000;
        document.settle(millis);
        document.settle_shares(millis);
        // No owner has used a higher number so far.
        let mark = (guess.seen.revision * PASSES).saturating_add(PASSES - 1);
        let mark = if guess.seen.revision == 0 { 0 } else { mark };
        Ok(inspected(&document, mark, read.now))
    }

    async fn force(&self, force: &Force) -> Result<Forced, Failure> {
        let Some(order) = order_of(force) else {
            return Ok(Forced::Changed);
        };
        let done = self.step(&force.key, Step::Force(order)).await?;
        Ok(match done.reply {
            Reply::Told => Forced::Told,
            Reply::Done(Ended::Yes) => Forced::Freed,
            _ => Forced::Changed,
        })
    }
}
