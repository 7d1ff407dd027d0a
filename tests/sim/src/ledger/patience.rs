//! A call that waits is not told `Busy` before its wait is over.

use super::{Answer, Ledger};
use crate::plan::Plan;
use crate::world::MILLI;

impl Ledger {
    pub fn check_patience(&mut self, plan: &Plan) {
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let (Answer::Busy, Some(answered)) = (&call.answer, call.answered) else {
                continue;
            };
            let waited = plan.by_clock_of(call.process, answered - call.asked);
            let is_early = call.wait.is_none_or(|wait| waited + MILLI < wait);
            if is_early {
                let text = self.show(number);
                self.violates("a call that waits is refused before its time", text);
            }
        }
    }
}
