//! The delivery of messages, to the server and from it.

use super::{Cooling, GIVEN, LATE_DUPLICATE, Limits, Message, World, Wrong};
use crate::base::clock::Moment;
use crate::lease::Extended;
use crate::lease::cohort::GAP;
use crate::model::fault::ModelFault;
use crate::model::message::{AcquireReply, Ask, Name, Push};
use crate::model::process::LateDuplicate;
use crate::model::server::{Surroundings, Value};
use crate::protocol::{End, Ended, News, Operation, Reply, Way};

impl World {
    pub(super) fn deliver(&mut self, message: Message, limits: &Limits) -> Result<(), Wrong> {
        match message {
            Message::Ask(ask, _, round) => self.asked(ask, round, false, limits),
            Message::AcquireReply(name, _, answer) => {
                let now = self.now();
                let waiter = self.processes[usize::from(name.process)].waiter.as_mut();
                let Some(waiter) = waiter.filter(|waiter| waiter.name == name) else {
                    return Ok(());
                };
                let Some(request) = waiter.asked else {
                    return Ok(());
                };
                let next_move = waiter.answered(request, answer, now, limits.fault);
                if !limits.timers {
                    waiter.until = Moment::FAR;
                }
                self.apply(name.process, next_move, limits)
            }
            Message::Extend(name, sent, ttl) => {
                let token = name.token();
                let extend = Operation::Extend { token, ttl };
                let ours = self.serve(&extend, false, limits)? == Reply::Done(Ended::Yes);
                let owned = self.processes[usize::from(name.process)].owned.as_ref();
                let awaited = owned.filter(|owned| owned.name == name);
                if awaited.is_some_and(|owned| owned.extending == Some((sent, ttl))) {
                    self.net.push(Message::Extended(name, sent, ttl, ours));
                }
                Ok(())
            }
            Message::Extended(name, sent, ttl, ours) => {
                let owned = self.processes[usize::from(name.process)].owned.as_ref();
                let awaited = owned.filter(|owned| owned.name == name);
                if awaited.is_none_or(|owned| owned.extending != Some((sent, ttl))) {
                    return Ok(());
                }
                let answer = if ours {
                    Extended::Yes
                } else {
                    Extended::NotOurs
                };
                self.renewed(name.process, sent, answer, limits);
                Ok(())
            }
            Message::Release(name, fence) => {
                self.serves_end(name, fence, Way::Release, limits)?;
                self.release_arrived(name);
                Ok(())
            }
            Message::Vacate(name, fence) => {
                let before = self.server.current();
                let gap = u64::try_from(GAP.as_millis()).unwrap_or(u64::MAX);
                self.serves_end(name, fence, Way::Vacate(gap), limits)?;
                let after = self.server.current();
                if after.is_some() && after != before {
                    return Err(Wrong::GapFilled);
                }
                self.release_arrived(name);
                Ok(())
            }
            Message::Cool(name, fence) => self.cools(name, fence, limits),
            Message::Remember(name, fence) => self.recorded(name, fence, limits),
            Message::CheckQueue(process) => {
                let no_owner = Name { process, lease: 0 };
                self.serves_end(no_owner, None, Way::Leave, limits)?;
                Ok(())
            }
            Message::Push(push) => self.push(push, limits),
        }
    }

    /// Delivers a request; with `refused` the server refuses all writes now.
    pub(super) fn asked(
        &mut self,
        ask: Ask,
        round: u8,
        refused: bool,
        limits: &Limits,
    ) -> Result<(), Wrong> {
        let replaced = ask.replaces.map_or(ask.token, |(replaced, _)| replaced);
        let held =
            matches!(self.server.current(), Some((value, _)) if value == Value::Held(replaced));
        let passed_over = held && replaced != ask.token && self.others_wait(ask.token.process);
        let reply = self.serve(&ask.operation(), refused, limits)?;
        let answer = match (reply, self.server.current()) {
            (Reply::Granted(fence), _) => AcquireReply::Granted(fence),
            (Reply::Busy(refused), Some((value, left))) => {
                AcquireReply::Busy(value, left, self.server.micros, refused.queued)
            }
            (reply, found) => unreachable!("{reply:?} beside {found:?}"),
        };
        if passed_over && matches!(answer, AcquireReply::Granted(_)) {
            return Err(Wrong::PassedOverTheQueue);
        }
        let waiter = self.processes[usize::from(ask.token.process)]
            .waiter
            .as_ref();
        let awaited = waiter.filter(|waiter| waiter.name == ask.token);
        if awaited.is_some_and(|waiter| waiter.is_waiting_for(round, limits.fault)) {
            self.net
                .push(Message::AcquireReply(ask.token, round, answer));
        }
        Ok(())
    }

    /// Returns whether another living process waits for the lock.
    fn others_wait(&self, process: u8) -> bool {
        let mut waiting = self.server.waiting().map(|(name, _)| name.process);
        waiting.any(|other| other != process && self.processes[usize::from(other)].alive)
    }

    /// Delivers a cooldown.
    fn cools(&mut self, name: Name, fence: Option<u64>, limits: &Limits) -> Result<(), Wrong> {
        let millis = limits.cooldown_millis.unwrap_or(0);
        // The command may change its own cooldown.
        let of_this = |cooling: &mut Cooling| cooling.name == name;
        let cooling = self.cooling.take_if(of_this);
        let cool = Way::Cool {
            span: millis,
            until: 0,
        };
        let released = self.serves_end(name, fence, cool, limits)?;
        self.closed(name, fence);
        match cooling {
            Some(Cooling { ends: None, .. }) if released == Ended::Yes => {
                let ends = Some(self.server.millis() + millis);
                self.cooling = Some(Cooling { name, ends });
            }
            // The command arrived twice, and the cooldown runs already.
            Some(Cooling { ends: Some(_), .. }) => self.cooling = cooling,
            _ => {}
        }
        Ok(())
    }

    /// Notes that a cooldown or a record has arrived. The second release of its lease follows.
    pub(super) fn closed(&mut self, name: Name, fence: Option<u64>) {
        let now = self.now();
        let process = &mut self.processes[usize::from(name.process)];
        if process.alive && std::mem::take(&mut process.cools_with_late_duplicate) {
            let at = now + LATE_DUPLICATE;
            process
                .late_duplicates
                .push(LateDuplicate { name, fence, at });
        }
        self.release_arrived(name);
    }

    fn push(&mut self, push: Push, limits: &Limits) -> Result<(), Wrong> {
        let (Push::HandedOver(name, ..) | Push::Next(name, _)) = push;
        if limits.has(ModelFault::SharedChannel) {
            // The other process hears the push too, and releases the grant that it did not request.
            self.net.push(Message::Release(name, None));
        }
        let now = self.now();
        let process = &mut self.processes[usize::from(name.process)];
        if !process.alive {
            return Ok(());
        }
        if let Some(waiter) = &mut process.waiter
            && waiter.name == name
        {
            let next_move = waiter.hears(push, now, limits.fault);
            return self.apply(name.process, next_move, limits);
        }
        if !process.knows(name) {
            match push {
                Push::HandedOver(..) => self.net.push(Message::Release(name, None)),
                Push::Next(..) => {
                    self.serves_end(name, None, Way::Leave, limits)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the process check on the key when the grant is over.
    fn schedule_hand_over_check(&mut self, process: u8, limits: &Limits) {
        let over = self.now() + GIVEN;
        let process = &mut self.processes[usize::from(process)];
        if limits.timers && process.alive && !limits.has(ModelFault::HandOverNotChecked) {
            process.handed_over_until = Some(over);
        }
    }

    /// Ends a lease or a wait at the server.
    pub(super) fn serves_end(
        &mut self,
        name: Name,
        fence: Option<u64>,
        way: Way,
        limits: &Limits,
    ) -> Result<Ended, Wrong> {
        let token = name.token();
        let end = Operation::End(End { token, fence, way });
        match self.serve(&end, false, limits)? {
            Reply::Ended { how, .. } => Ok(how),
            reply => unreachable!("{reply:?}"),
        }
    }

    /// Runs an operation, and checks that it touches no other token's key. With `refused` the server refuses all writes.
    fn serve(
        &mut self,
        operation: &Operation,
        refused: bool,
        limits: &Limits,
    ) -> Result<Reply, Wrong> {
        let processes = &self.processes;
        let listens = |address| {
            let living = (0..).zip(processes).filter(|(_, process)| process.alive);
            let mut names = living.map(|(process, _)| Name { process, lease: 0 });
            names.any(|name| name.token().address() == address)
        };
        let beside = Surroundings {
            listens: &listens,
            refuses_writes: refused,
            fault: limits.fault,
        };
        let before = self.server.current();
        let (reply, pushes) = self.server.run(operation, &beside);
        let (caller, replaced) = match operation {
            Operation::Acquire(ask) => (ask.token, ask.replaces),
            Operation::Extend { token, .. } => (*token, None),
            Operation::End(end) => (end.token, None),
            _ => unreachable!("no process sends it"),
        };
        let caller = Name::of(caller);
        let tokens = [Some(caller), replaced.map(Name::of)];
        let theirs = |value: Value| match value {
            Value::Held(owner) => tokens.contains(&Some(owner)),
            Value::Cooling(_) | Value::Done(_) | Value::ForeignOwner => false,
        };
        let after = self.server.current();
        if before.is_some_and(|(value, _)| !theirs(value)) && after != before {
            return Err(Wrong::ForeignKeyTouched);
        }
        // Until the cooldown has arrived, the key stays with the lease before it.
        let comes = |cooling: Cooling| cooling.ends.is_none().then_some(Value::Held(cooling.name));
        let comes_after = before.filter(|(value, _)| self.cooling.and_then(comes) == Some(*value));
        if comes_after.is_some_and(|(value, _)| after.map(|(value, _)| value) != Some(value)) {
            return Err(Wrong::CooldownCut);
        }
        for push in pushes {
            let name = Name::of(push.token);
            match push.news {
                News::Given { grant, fence } => {
                    if !self.processes[usize::from(name.process)].alive {
                        return Err(Wrong::HandedToDeadProcess);
                    }
                    self.schedule_hand_over_check(caller.process, limits);
                    let ends = self.server.millis() + grant;
                    let given = Push::HandedOver(name, fence, ends);
                    self.net.push(Message::Push(given));
                }
                News::Next { after, .. } if limits.timers => {
                    self.net.push(Message::Push(Push::Next(name, after)));
                }
                News::Next { .. } => {}
                News::Forced => unreachable!("no operator is in the model"),
            }
        }
        Ok(reply)
    }
}
