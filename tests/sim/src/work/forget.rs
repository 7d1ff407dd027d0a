//! A caller that forgets the record of a key, where no caller leaves any.

use lock_core::middleware::Forgotten;

use super::{Worker, name};
use crate::ledger::ledger;

impl Worker {
    pub(super) async fn forget(&mut self) {
        let key = self.draw_key();
        let answer = self.locks.forget(name(key)).await;
        // An order that is sent twice may have deleted a record the first time.
        if matches!(answer, Ok(Forgotten::Yes)) && self.plan.faults.is_empty() {
            let text = format!("p{} forgets k{key}", self.process);
            ledger(|it| it.violates("a lock is forgotten as if it was a record", text));
        }
    }
}
