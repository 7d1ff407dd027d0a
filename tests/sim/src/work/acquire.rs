//! A lock that one owner has alone.

use std::time::Duration;

use lock_core::machine::timeout;

use super::{Worker, answer_of, end, request};
use crate::ledger::{Answer, Owning, ledger};

impl Worker {
    pub(super) async fn acquire(&mut self) {
        let draw = self.draw();
        let call = ledger(|it| it.asks(self.process, self.task, draw.key, draw.ttl, draw.wait));
        let acquire = request(&self.locks, &draw).acquire();
        let cancel = draw.cancel.map_or(Duration::MAX, Duration::from_nanos);
        let guard = match timeout(cancel, acquire).await {
            Err(_) => return ledger(|it| it.answered(call, Answer::Cancelled)),
            Ok(Err(error)) => return ledger(|it| it.answered(call, answer_of(&error))),
            Ok(Ok(guard)) => guard,
        };
        ledger(|it| it.answered(call, Answer::Granted));
        let handle = guard.handle();
        if !self
            .hold(call, draw.key, Owning::Alone, &handle, draw.hold)
            .await
        {
            ledger(|it| it.calls[call].answer = Answer::Lost);
        }
        end(call, guard, draw.end).await;
    }
}
