//! A writer that goes on as a reader.

use std::time::Duration;

use lock_core::machine::timeout;

use super::{Worker, answer_of, end, name};
use crate::ledger::{Answer, Owning, ledger};
use crate::world::{MILLI, sim};

/// How long the reader goes on, in milliseconds.
const HOLDS: [u64; 5] = [0, 40, 200, 700, 2_500];

impl Worker {
    pub(super) async fn downgrade(&mut self) {
        let draw = self.draw();
        let hold = self.rng.pick(&HOLDS) * MILLI;
        let cancels = self.rng.percent(self.plan.cancels);
        let cancel = cancels.then(|| Duration::from_nanos(self.rng.below(3 * MILLI)));
        let request = self.locks.lock(name(draw.key));
        let asked = self
            .ask(request, &draw, vec![draw.key], Owning::Alone)
            .await;
        let Some((writer, guard)) = asked else {
            return;
        };
        self.hold(writer, &guard.handle(), draw.hold).await;
        let token = guard.fencing_token();
        let reader = ledger(|it| it.goes_on_as_reader(writer));
        let downgraded = timeout(cancel.unwrap_or(Duration::MAX), guard.downgrade()).await;
        let (answer, guard) = match downgraded {
            Err(_) => (Answer::Cancelled, None),
            Ok(Err(error)) => (answer_of(&error), None),
            Ok(Ok(guard)) => (Answer::Granted, Some(guard)),
        };
        ledger(|it| it.answered(reader, answer));
        let Some(guard) = guard else { return };
        ledger(|it| {
            it.calls[writer].released = Some(sim().now());
            if guard.fencing_token() != token {
                it.violates("a downgrade changes the token", format!("{token:?}"));
            }
        });
        self.hold(reader, &guard.handle(), hold).await;
        end(reader, guard, draw.end).await;
    }
}
