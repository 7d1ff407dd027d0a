//! Those who have the lock, their keeper, and what is being given back.

use std::time::Duration;

use super::{Cooling, LATE_DUPLICATE, Limits, Message, World, Wrong};
use crate::base::clock::Moment;
use crate::lease::{Action, Loss, Phase, Renewal};
use crate::model::fault::Fault;
use crate::model::process::{LONGEST_COHORT, MOST, Name, Tenure, Twin};

impl World {
    pub(super) fn end(&mut self, index: u8, limits: &Limits) -> Result<(), Wrong> {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        let Some(mut tenure) = process.tenure.take() else {
            return Ok(());
        };
        self.net.retain(
            |message| !matches!(message, Message::Extended(other, ..) if *other == tenure.name),
        );
        if process.line > 0
            && let Some(next) = tenure.pass(limits.terms(), now, limits.fault)
        {
            process.line -= 1;
            if self.passes_over_the_queue(index, &next) {
                return Err(Wrong::PassedOverTheQueue);
            }
            return self.holds(index, next);
        }
        match tenure.lease.close(now) {
            Phase::Held | Phase::Lost(_) => {
                self.release(tenure.name, Some(tenure.fence), tenure.twin, limits);
            }
            Phase::Asking | Phase::Closed => {}
        }
        self.promote(index, limits);
        Ok(())
    }

    /// Whether another process stands in the queue that may expect to have its turn by now: more
    /// than one count of this lease ago it came, or the lease was granted.
    fn passes_over_the_queue(&self, index: u8, next: &Tenure) -> bool {
        let mut others = self.server.keys[0].queue.iter();
        let one_count = LONGEST_COHORT + LONGEST_COHORT / 100;
        let held = self.now().since(next.granted) > one_count;
        others.any(|waiting| {
            let waited = Duration::from_micros(self.server.micros.saturating_sub(waiting.score));
            let too_long = held && waited > one_count;
            waiting.token.process != index && (too_long || next.passes > MOST)
        })
    }

    /// The tenure ends, and its key is to be left free for a while. The process stands back for less than
    /// a tick: its next task may ask at once.
    pub(super) fn vacate(&mut self, index: u8, limits: &Limits) {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        let Some(mut tenure) = process.tenure.take() else {
            return;
        };
        let (name, fence) = (tenure.name, Some(tenure.fence));
        self.net
            .retain(|message| !matches!(message, Message::Extended(other, ..) if *other == name));
        match tenure.lease.close(now) {
            Phase::Held => self.give_back(Message::Vacate(name, fence), tenure.twin, limits),
            Phase::Lost(_) => self.release(name, fence, tenure.twin, limits),
            Phase::Asking | Phase::Closed => {}
        }
        self.promote(index, limits);
    }

    /// The tenure ends, and its key is to cool down.
    pub(super) fn cool(&mut self, index: u8, limits: &Limits) {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        let Some(mut tenure) = process.tenure.take() else {
            return;
        };
        let name = tenure.name;
        self.net
            .retain(|message| !matches!(message, Message::Extended(other, ..) if *other == name));
        match tenure.lease.close(now) {
            Phase::Held => {
                let fence = Some(tenure.fence);
                self.net.push(Message::Cool(name, fence));
                let steppable = limits.has(Fault::CooldownIsSteppedOver);
                let process = &mut self.processes[usize::from(index)];
                if !limits.has(Fault::CooldownUnderWayIsForgotten) {
                    process.leaves(name, fence, steppable);
                }
                // Sent behind it, once it has arrived.
                process.cools_with_twin = tenure.twin;
                self.cooling = Some(Cooling { name, ends: None });
            }
            Phase::Lost(_) => self.release(name, Some(tenure.fence), tenure.twin, limits),
            Phase::Asking | Phase::Closed => {}
        }
        self.promote(index, limits);
    }

    pub(super) fn release(&mut self, name: Name, fence: Option<u64>, twin: bool, limits: &Limits) {
        self.give_back(Message::Release(name, fence), twin, limits);
    }

    fn give_back(&mut self, message: Message, twin: bool, limits: &Limits) {
        let (Message::Release(name, fence) | Message::Vacate(name, fence)) = message else {
            unreachable!("what gives a lease back");
        };
        self.net.push(message);
        let again = self.now() + LATE_DUPLICATE;
        let process = &mut self.processes[usize::from(name.process)];
        if limits.has(Fault::EarlierReleaseIsForgotten) {
            process.forget_all();
        }
        process.leaves(name, fence, true);
        if twin {
            let at = again;
            process.twins.push(Twin { name, fence, at });
        }
    }

    pub(super) fn given_back(&mut self, name: Name) {
        self.processes[usize::from(name.process)].forget(name);
    }

    pub(super) fn look(&mut self, index: u8, limits: &Limits) {
        let now = self.now();
        let process = &mut self.processes[usize::from(index)];
        if let Some(twin) = process.twins.first().copied()
            && twin.at <= now
        {
            process.twins.remove(0);
            self.net.push(Message::Release(twin.name, twin.fence));
            return;
        }
        if process.gave.take_if(|at| *at <= now).is_some() {
            self.net.push(Message::LookAfter(index));
            return;
        }
        let Some(tenure) = &mut process.tenure else {
            return;
        };
        match tenure.lease.poll(now) {
            Action::Renew => {
                let ttl = u64::try_from(tenure.lease.renewing_to().as_millis()).unwrap_or(0);
                tenure.extending = Some((now, ttl));
                let extend = Message::Extend(tenure.name, now, ttl);
                self.net.push(extend);
            }
            Action::Lost => self.lost(index, true, limits),
            Action::Nothing | Action::Overdue | Action::HeldLong => {}
        }
    }

    pub(super) fn lost(&mut self, index: u8, discard: bool, limits: &Limits) {
        let at = self.now() + LATE_DUPLICATE;
        let process = &mut self.processes[usize::from(index)];
        if let Some(tenure) = process.tenure.take() {
            let (name, fence) = (tenure.name, Some(tenure.fence));
            if discard {
                self.release(name, fence, tenure.twin, limits);
            } else {
                // It deletes nothing, and gives a key that is free to the next.
                self.net.push(Message::Release(name, fence));
                if tenure.twin {
                    process.twins.push(Twin { name, fence, at });
                }
            }
        }
        self.promote(index, limits);
    }

    pub(super) fn renewed(&mut self, index: u8, sent: Moment, answer: Renewal, limits: &Limits) {
        let now = self.now();
        let terms = limits.longer();
        let process = &mut self.processes[usize::from(index)];
        let Some(tenure) = &mut process.tenure else {
            return;
        };
        if tenure.renewed(sent, answer, terms, now, limits.fault) {
            let discard = !matches!(tenure.lease.phase(), Phase::Lost(Loss::NotOurs));
            self.lost(index, discard, limits);
        }
    }
}
