//! Locks that owners share: readers, and permits.

use super::{Worker, end, name};
use crate::ledger::Owning;
use crate::world::MILLI;

impl Worker {
    pub(super) async fn read(&mut self) {
        self.share(Owning::READER).await;
    }

    pub(super) async fn permit(&mut self) {
        let limit = self.rng.pick(&self.plan.permits);
        self.share(Owning::Share(limit)).await;
    }

    async fn share(&mut self, owning: Owning) {
        let draw = self.draw();
        let hold = self.rng.pick(&self.plan.habits.share_holds) * MILLI;
        let request = self.locks.lock(name(draw.key));
        let request = match owning {
            Owning::Share(limit) if owning != Owning::READER => request.permits(limit),
            _ => request.read(),
        };
        if let Some((call, guard)) = self.ask(request, &draw, vec![draw.key], owning).await {
            self.hold(call, &guard.handle(), hold).await;
            end(call, guard, draw.end).await;
        }
    }
}
