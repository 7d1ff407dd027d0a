//! The delivery of messages, to the server and from it.

use super::{Cooling, GIVEN, LATE_DUPLICATE, Limits, Message, World, Wrong};
use crate::base::clock::Moment;
use crate::lease::Extended;
use crate::model::fault::ModelFault;
use crate::model::process::{LateDuplicate, Name};
use crate::model::server::{AcquireReply, Around, Ask, ModelServer, Push, ReleaseReply, Value};

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
                let ours = self.serve(limits, &[name], |server, around| {
                    server.extend(0, name, ttl, around)
                })?;
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
                self.serve(limits, &[name], |server, around| {
                    server.release(0, name, fence, false, around)
                })?;
                self.release_arrived(name);
                Ok(())
            }
            Message::Vacate(name, fence) => {
                let before = self.server.current(0);
                self.serve(limits, &[name], |server, around| {
                    server.vacate(0, name, fence, around)
                })?;
                let after = self.server.current(0);
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
                self.serve(limits, &[no_owner], |server, around| {
                    server.release(0, no_owner, None, true, around)
                })?;
                Ok(())
            }
            Message::Push(push) => self.push(push, limits),
        }
    }

    /// Delivers a request; with `refused` the server refuses all writes now.
    pub(super) fn asked(
        &mut self,
        ask: Ask<Name>,
        round: u8,
        refused: bool,
        limits: &Limits,
    ) -> Result<(), Wrong> {
        let replaced = ask.replaces.map_or(ask.token, |(replaced, _)| replaced);
        let held =
            matches!(self.server.current(0), Some((value, _)) if value == Value::Held(replaced));
        let passed_over = held && replaced != ask.token && self.others_wait(ask.token.process);
        let answer = self.serve(limits, &[ask.token, replaced], |server, around| {
            around.refuses_writes = refused;
            server.acquire(0, ask, around)
        })?;
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
        let mut waiting = self.server.keys[0].queue.iter();
        waiting.any(|one| {
            let other = one.token.process;
            other != process && self.processes[usize::from(other)].alive
        })
    }

    /// Delivers a cooldown.
    fn cools(&mut self, name: Name, fence: Option<u64>, limits: &Limits) -> Result<(), Wrong> {
        let millis = limits.cooldown_millis.unwrap_or(0);
        // The command may change its own cooldown.
        let of_this = |cooling: &mut Cooling| cooling.name == name;
        let cooling = self.cooling.take_if(of_this);
        let released = self.serve(limits, &[name], |server, around| {
            server.cool(0, name, fence, millis, around)
        })?;
        self.closed(name, fence);
        match cooling {
            Some(Cooling { ends: None, .. }) if released == ReleaseReply::Yes => {
                let ends = Some(self.server.micros / 1_000 + millis);
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

    fn push(&mut self, push: Push<Name>, limits: &Limits) -> Result<(), Wrong> {
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
                    self.serve(limits, &[name], |server, around| {
                        server.release(0, name, None, true, around)
                    })?;
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

    /// Runs a script for these tokens, and checks that it touches no other token's key.
    pub(super) fn serve<R>(
        &mut self,
        limits: &Limits,
        tokens: &[Name],
        script: impl FnOnce(&mut ModelServer<Name>, &mut Around<'_, Name>) -> R,
    ) -> Result<R, Wrong> {
        let processes = &self.processes;
        let listens = |name: Name| processes[usize::from(name.process)].alive;
        let mut around = Around {
            listens: &listens,
            pushes: Vec::new(),
            refuses_writes: false,
            fault: limits.fault,
        };
        let before = self.server.current(0);
        let reply = script(&mut self.server, &mut around);
        let theirs = |value: Value<Name>| match value {
            Value::Held(owner) => tokens.contains(&owner),
            Value::Cooling(_) | Value::Done(_) | Value::ForeignOwner => false,
        };
        let after = self.server.current(0);
        if before.is_some_and(|(value, _)| !theirs(value)) && after != before {
            return Err(Wrong::ForeignKeyTouched);
        }
        // Until the cooldown has arrived, the key stays with the lease before it.
        let comes = |cooling: Cooling| cooling.ends.is_none().then_some(Value::Held(cooling.name));
        let comes_after = before.filter(|(value, _)| self.cooling.and_then(comes) == Some(*value));
        if comes_after.is_some_and(|(value, _)| after.map(|(value, _)| value) != Some(value)) {
            return Err(Wrong::CooldownCut);
        }
        for push in around.pushes {
            if let Push::HandedOver(name, ..) = push {
                if !self.processes[usize::from(name.process)].alive {
                    return Err(Wrong::HandedToDeadProcess);
                }
                self.schedule_hand_over_check(tokens[0].process, limits);
            }
            if limits.timers || matches!(push, Push::HandedOver(..)) {
                self.net.push(Message::Push(push));
            }
        }
        Ok(reply)
    }
}
