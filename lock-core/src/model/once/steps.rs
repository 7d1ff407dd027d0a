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
        let mut steps = Vec::new();
        let alive = self.all_runs().filter(|(id, _)| self.is_alive(*id));
        if alive.count() < 2 && self.unused().is_some() {
            let kinds = (0..).zip(limits.requests);
            steps.extend(kinds.map(|(kind, _)| Step::Sends(kind)));
        }
        for (id, run) in self.all_runs() {
            if run.transaction == Transaction::Sent {
                steps.push(Step::Commits(id));
            }
            if run.is_cut() {
                steps.push(Step::RollsBack(id));
            }
            if run.place == Place::Ended {
                continue;
            }
            steps.push(Step::GoesOn(id, run.place));
            let is_open = run.transaction == Transaction::Open;
            let is_sent = run.transaction == Transaction::Sent;
            let faults = [
                (Fault::Kill, true),
                (Fault::LockLoss, self.lock == Some(id)),
                (Fault::Break, is_open || is_sent),
                (Fault::HandlerFails, run.place == Place::Handler),
                (Fault::HandlerCommits, is_open && run.place == Place::Record),
                (
                    Fault::RollsBackUnseen,
                    is_open && run.place == Place::Record,
                ),
            ];
            let faults = faults
                .iter()
                .filter(|(fault, can)| *can && self.has_left(*fault));
            steps.extend(faults.map(|(fault, _)| Step::Fault(*fault, id)));
        }
        if self.lock.is_some_and(|owner| !self.is_alive(owner)) {
            steps.push(Step::LockRunsOut);
        }
        self.steps_of_records(limits, &mut steps);
        steps
    }

    fn steps_of_records(&self, limits: &Limits, steps: &mut Vec<Step>) {
        for (number, (key, entry)) in (0..).zip(self.entries.iter().enumerate()) {
            let is_locked = self.is_locked(key, None) || (key == 0 && self.sweeping);
            let faults = [
                (Fault::Expiry, self.record(key).is_some()),
                (Fault::Forget, entry.record.is_some() && !is_locked),
                (Fault::Failover, key == 0),
            ];
            let faults = faults
                .iter()
                .filter(|(fault, can)| *can && self.has_left(*fault));
            steps.extend(faults.map(|(fault, _)| Step::Fault(*fault, number)));
        }
        let by_name = limits.has(Change::SweepsByName);
        let has_expired = self.entries[0].record.is_some_and(|row| row.expired);
        let is_locked = self.is_locked(0, None);
        if self.sweeping {
            if !is_locked {
                steps.push(Step::SweepDeletes);
            }
        } else if has_expired && (by_name || limits.has(Change::Sweeps) && !is_locked) {
            steps.push(Step::SweepChooses);
        }
    }

    /// Returns the world after a step, or none if the run waits.
    pub(super) fn after(&self, step: Step, limits: &Limits) -> Result<Option<Self>, Wrong> {
        let mut after = *self;
        match step {
            Step::Sends(request) => {
                let id = after.unused().expect("a number is left");
                after.run(id).request = request;
                after.run(id).place = Place::Lock;
            }
            Step::GoesOn(id, _) => {
                if !after.goes_on(id, limits)? {
                    return Ok(None);
                }
            }
            Step::Commits(id) => after.commits(id, limits)?,
            Step::RollsBack(id) => after.run(id).transaction = Transaction::RolledBack,
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
                after.fails(fault, at, limits)?;
            }
        }
        after.settles();
        Ok(Some(after))
    }

    fn fails(&mut self, fault: Fault, at: u8, limits: &Limits) -> Result<(), Wrong> {
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
                self.commits(at, limits)?;
                self.run(at).transaction = Transaction::Autocommit;
            }
            Fault::RollsBackUnseen => {
                run.transaction = Transaction::Autocommit;
                run.rows = 0;
            }
            Fault::Expiry => {
                let record = self.entries[key].record.as_mut();
                record.expect("a record expires").expired = true;
            }
            Fault::Forget => {
                self.keeps_before();
                self.ends_life(key);
            }
            Fault::Failover => self.fails_over(),
        }
        Ok(())
    }
}
