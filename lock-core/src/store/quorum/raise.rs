//! Raising the registers of a held lease to a fencing token that came from another key's registers.
//!
//! A lock of several keys has one fencing token, the highest of its keys. A later grant of any of the keys needs a
//! majority, which shares a node with the majority that is raised here, and that node refuses every lower number.

use std::sync::Arc;

use super::Quorum;
use super::fan_out::FanOut;
use super::proposal_number;
use super::vote_ledger::contains;
use crate::store::vote::{BLOCK, Propose, VoteOperation, VoteOutcome};
use crate::store::{Extension, Failure, Lane, Operation, Outcome, Raise};

impl Quorum {
    pub(super) async fn raise(self: &Arc<Self>, raise: Raise, lane: Lane) -> Outcome {
        let lease = Extension {
            key: Arc::clone(&raise.key),
            token: raise.token,
            ttl: raise.ttl,
        };
        let register = proposal_number::register_of(&raise.key);
        // Above the tokens of all tasks that the lease may pass to.
        let number = u64::from(raise.fence) + BLOCK;
        let Some(ledger) = self.leases.of(raise.token) else {
            return Outcome::Failed(too_few());
        };
        // A withdrawal of these votes has to name this number, or it would leave them alone as newer ones.
        ledger.proposes(number);
        ledger.note_number(number);
        self.numbers.saw(register, number);
        let reserve = Operation::Vote(VoteOperation::Reserve(Propose {
            acquire: lease.acquire(),
            register,
            number,
            max_ttl: self.settings.max_ttl,
        }));
        let granted = ledger.granted();
        let asked = self.up().filter(|(place, _)| contains(granted, *place));
        let asked = asked.map(|(place, node)| (place, node.ask(reserve.clone(), lane)));
        let overdue = self.timers.now() + self.patience(raise.ttl);
        let mut answers = FanOut::new(asked).until(&self.timers, overdue);
        let mut raised = 0;
        while let Some((_, outcome)) = answers.next().await {
            if let Outcome::Vote(VoteOutcome::Reserved(true)) = outcome {
                raised += 1;
            }
            if raised >= self.quorum() {
                return Outcome::Raised;
            }
        }
        Outcome::Failed(too_few())
    }
}

fn too_few() -> Failure {
    Failure::refused(
        "less than a majority of the nodes noted the fencing token of a lock of several keys",
    )
}
