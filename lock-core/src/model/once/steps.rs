//! All steps that a world may take next.

use super::design::{Change, Fault, Limits};
use super::world::{Id, Place, Transaction, World, Wrong};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A client sends the request of this kind.
    Sends(u8),
    /// A run takes its next step, from this place.
    GoesOn(Id, Place),
    /// The database executes a COMMIT.
    Commits(Id),
    /// The database notices the end of a connection.
    RollsBack(Id),
    /// The lock of a dead owner runs out.
    LockRunsOut,
    /// A sweep chooses the expired record of the first key.
    SweepChooses,
    SweepDeletes,
    /// The fault happens to the run, or to the record of the key, of this number.
    Fault(Fault, u8),
}

impl World {
    pub(super) fn steps(&self, limits: &Limits) -> Vec<Step> {
        use super::design::Fault::*;
        let is_alive = |id: Id| self.runs[usize::from(id)].place != Place::Ended;
        let is_dead = |owner| !is_alive(owner);
        let is_free = (0..5).filter(|id| is_alive(*id)).count() < 2 && self.unused().is_some();
        let has_expired = self.entries[0].record.is_some_and(|row| row.expired);
        let is_skipped = self.is_locked(0, None) && !limits.has(Change::SweepsByName);
        let may_sweep = limits.has(Change::Sweeps) && !self.sweeping && has_expired;
        let mut steps = vec![
            (Step::LockRunsOut, self.lock.is_some_and(is_dead)),
            (Step::SweepChooses, may_sweep && !is_skipped),
            (
                Step::SweepDeletes,
                self.sweeping && !self.is_locked(0, None),
            ),
            (Step::Fault(Failover, 0), true),
        ];
        let kinds = (0..).zip(limits.requests);
        steps.extend(kinds.map(|(kind, _)| (Step::Sends(kind), is_free)));
        for (id, run) in (0..).zip(self.runs) {
            let is_sent = run.transaction == Transaction::Sent;
            let writes = run.transaction == Transaction::Open && run.place == Place::Record;
            let is_owner = is_alive(id) && self.lock == Some(id);
            steps.extend([
                (Step::Commits(id), is_sent),
                (Step::RollsBack(id), run.is_cut()),
                (Step::GoesOn(id, run.place), is_alive(id)),
                (Step::Fault(Kill, id), is_alive(id)),
                (Step::Fault(LockLoss, id), is_owner),
                (Step::Fault(Break, id), run.is_open() && !run.is_cut()),
                (Step::Fault(HandlerFails, id), run.place == Place::Handler),
                (Step::Fault(HandlerCommits, id), writes),
                (Step::Fault(RollsBackUnseen, id), writes),
            ]);
        }
        for (number, key) in [(0, 0), (1, 1)] {
            let is_locked = self.is_locked(key, None) || self.sweeping;
            let is_kept = self.entries[key].record.is_some() && !is_locked;
            steps.push((Step::Fault(Expiry, number), self.record(key).is_some()));
            steps.push((Step::Fault(Forget, number), is_kept));
        }
        let is_left = |step: &Step| match step {
            Step::Fault(fault, _) => self.faults[*fault as usize] > 0,
            _ => true,
        };
        steps.retain(|(step, can)| *can && is_left(step));
        steps.into_iter().map(|(step, _)| step).collect()
    }

    pub(super) fn after(&self, step: Step, limits: &Limits) -> Result<Self, Wrong> {
        let mut after = *self;
        match step {
            Step::Sends(request) => {
                let id = after.unused().expect("a number is left");
                (after.run(id).request, after.run(id).place) = (request, Place::Lock);
            }
            Step::GoesOn(id, _) => after.goes_on(id, limits)?,
            Step::Commits(id) => after.commits(id)?,
            Step::RollsBack(id) => after.run(id).transaction = Transaction::None,
            Step::LockRunsOut => after.lock = None,
            Step::SweepChooses => after.sweeping = true,
            Step::SweepDeletes => {
                after.keeps_before();
                if after.record(0).is_none() {
                    after.ends_life(0);
                }
                after.entries[0].record = None;
                after.sweeping = false;
            }
            Step::Fault(fault, at) => {
                after.faults[fault as usize] -= 1;
                after.fails(fault, at)?;
            }
        }
        after.settles();
        Ok(after)
    }

    fn fails(&mut self, fault: Fault, at: u8) -> Result<(), Wrong> {
        let (key, run) = (usize::from(at), &mut self.runs[usize::from(at)]);
        match fault {
            Fault::Kill => run.place = Place::Ended,
            Fault::LockLoss => self.lock = None,
            Fault::Break if run.transaction == Transaction::Sent => run.place = Place::Unknown,
            Fault::Break | Fault::HandlerFails => {
                run.told_failed = true;
                self.finishes(at);
            }
            Fault::HandlerCommits => {
                self.commits(at)?;
                self.run(at).transaction = Transaction::Autocommit;
            }
            Fault::RollsBackUnseen => (run.transaction, run.rows) = (Transaction::Autocommit, 0),
            Fault::Expiry => self.entries[key]
                .record
                .iter_mut()
                .for_each(|row| row.expired = true),
            Fault::Forget => {
                self.keeps_before();
                self.ends_life(key);
            }
            Fault::Failover => self.fails_over(),
        }
        Ok(())
    }
}
