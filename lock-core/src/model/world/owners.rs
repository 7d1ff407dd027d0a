//! Owners, their keeper, and their releases.

use std::time::Duration;

use super::{Cooling, LATE_DUPLICATE, Limits, Message, World, Wrong};
use crate::base::clock::Moment;
use crate::lease::{Action, Extended, Loss, Phase};
use crate::model::fault::ModelFault;
use crate::model::message::Name;
use crate::model::process::{LONGEST_COHORT, LateDuplicate, MOST, OwnedLease};

impl World {
    pub(super) fn end(&mut self, index: u8, limits: &Limits) -> Result<(), Wrong> {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        let Some(mut owned) = process.owned.take() else {
            return Ok(());
        };
        self.net.retain(
            |message| !matches!(message, Message::Extended(other, ..) if *other == owned.name),
        );
        if process.line > 0
            && let Some(next) = owned.pass(limits.options(), now, limits.fault)
        {
            process.line -= 1;
            if self.passes_over_the_queue(index, &next) {
                return Err(Wrong::PassedOverTheQueue);
            }
            return self.holds(index, next);
        }
        match owned.lease.close(now) {
            Phase::Held | Phase::Lost(_) => {
                self.release(owned.name, Some(owned.fence), owned.late_duplicate);
            }
            Phase::Asking | Phase::Closed => {}
        }
        self.promote(index, limits);
        Ok(())
    }

    /// Returns whether another process in the queue should have had its turn by now.
    ///
    /// That is so if both its arrival and the grant of this lease are more than one count ago.
    fn passes_over_the_queue(&self, index: u8, next: &OwnedLease) -> bool {
        let one_count = LONGEST_COHORT + LONGEST_COHORT / 100;
        let held = self.now().since(next.granted) > one_count;
        self.server.waiting().any(|(name, arrival)| {
            let waited = Duration::from_micros(self.server.micros.saturating_sub(arrival));
            let too_long = held && waited > one_count;
            name.process != index && (too_long || next.passes > MOST)
        })
    }

    /// Ends the owner, and leaves the key free for a while.
    ///
    /// The process stands back for less than a tick, so its next task may ask at once.
    pub(super) fn vacate(&mut self, index: u8, limits: &Limits) {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        let Some(mut owned) = process.owned.take() else {
            return;
        };
        let (name, fence) = (owned.name, Some(owned.fence));
        self.net
            .retain(|message| !matches!(message, Message::Extended(other, ..) if *other == name));
        match owned.lease.close(now) {
            Phase::Held => self.send_release(Message::Vacate(name, fence), owned.late_duplicate),
            Phase::Lost(_) => self.release(name, fence, owned.late_duplicate),
            Phase::Asking | Phase::Closed => {}
        }
        self.promote(index, limits);
    }

    /// Ends the owner, and makes the key cool down.
    pub(super) fn cool(&mut self, index: u8, limits: &Limits) {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        let Some(mut owned) = process.owned.take() else {
            return;
        };
        let name = owned.name;
        self.net
            .retain(|message| !matches!(message, Message::Extended(other, ..) if *other == name));
        match owned.lease.close(now) {
            Phase::Held => {
                let fence = Some(owned.fence);
                self.net.push(Message::Cool(name, fence));
                let may_be_superseded = limits.has(ModelFault::CooldownSuperseded);
                let process = &mut self.processes[usize::from(index)];
                if !limits.has(ModelFault::PendingCooldownForgotten) {
                    process.leaves(name, fence, may_be_superseded);
                }
                // The second release follows once the cooldown has arrived.
                process.cools_with_late_duplicate = owned.late_duplicate;
                self.cooling = Some(Cooling { name, ends: None });
            }
            Phase::Lost(_) => self.release(name, Some(owned.fence), owned.late_duplicate),
            Phase::Asking | Phase::Closed => {}
        }
        self.promote(index, limits);
    }

    pub(super) fn release(&mut self, name: Name, fence: Option<u64>, late_duplicate: bool) {
        self.send_release(Message::Release(name, fence), late_duplicate);
    }

    fn send_release(&mut self, message: Message, late_duplicate: bool) {
        let (Message::Release(name, fence) | Message::Vacate(name, fence)) = message else {
            unreachable!("only releases are sent here");
        };
        self.net.push(message);
        let again = self.now() + LATE_DUPLICATE;
        let process = &mut self.processes[usize::from(name.process)];
        process.leaves(name, fence, true);
        if late_duplicate {
            let at = again;
            process
                .late_duplicates
                .push(LateDuplicate { name, fence, at });
        }
    }

    pub(super) fn release_arrived(&mut self, name: Name) {
        self.processes[usize::from(name.process)].forget(name);
    }

    pub(super) fn run_keeper(&mut self, index: u8, limits: &Limits) {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        if let Some(late_duplicate) = process.late_duplicates.first().copied()
            && late_duplicate.at <= now
        {
            process.late_duplicates.remove(0);
            self.net
                .push(Message::Release(late_duplicate.name, late_duplicate.fence));
            return;
        }
        if process.handed_over_until.take_if(|at| *at <= now).is_some() {
            self.net.push(Message::CheckQueue(index));
            return;
        }
        let Some(owned) = &mut process.owned else {
            return;
        };
        match owned.lease.poll(now) {
            Action::Renew => {
                let ttl = u64::try_from(owned.lease.renewing_to().as_millis()).unwrap_or(0);
                owned.extending = Some((now, ttl));
                let extend = Message::Extend(owned.name, now, ttl);
                self.net.push(extend);
            }
            Action::Lost => self.lost(index, true, limits),
            Action::Nothing | Action::Overdue | Action::HeldLong => {}
        }
    }

    pub(super) fn lost(&mut self, index: u8, discard: bool, limits: &Limits) {
        let at = self.now() + LATE_DUPLICATE;
        let process = &mut self.processes[usize::from(index)];
        if let Some(owned) = process.owned.take() {
            let (name, fence) = (owned.name, Some(owned.fence));
            if discard {
                self.release(name, fence, owned.late_duplicate);
            } else {
                // This release deletes nothing, and hands a free key to the next waiter.
                self.net.push(Message::Release(name, fence));
                if owned.late_duplicate {
                    process
                        .late_duplicates
                        .push(LateDuplicate { name, fence, at });
                }
            }
        }
        self.promote(index, limits);
    }

    pub(super) fn renewed(&mut self, index: u8, sent: Moment, answer: Extended, limits: &Limits) {
        let now = self.now();
        let options = limits.longer();
        let process = &mut self.processes[usize::from(index)];
        let Some(owned) = &mut process.owned else {
            return;
        };
        if owned.renewed(sent, answer, options, now, limits.fault) {
            let discard = !matches!(owned.lease.phase(), Phase::Lost(Loss::NotOurs));
            self.lost(index, discard, limits);
        }
    }
}
