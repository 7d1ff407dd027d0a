//! What arrives, at the server and from it.

use super::{Cooling, GIVEN, LATE_DUPLICATE, Limits, Message, World, Wrong};
use crate::base::clock::Moment;
use crate::lease::Renewal;
use crate::model::fault::Fault;
use crate::model::process::{Name, Twin};
use crate::model::server::{Answer, Around, Ask, Push, Released, Server, Value};

impl World {
    pub(super) fn deliver(&mut self, message: Message, limits: &Limits) -> Result<(), Wrong> {
        match message {
            Message::Ask(ask, _, round) => self.asked(ask, round, false, limits),
            Message::Answer(name, _, answer) => {
                let now = self.now();
                let waiter = self.processes[usize::from(name.process)].waiter.as_mut();
                let Some(waiter) = waiter.filter(|waiter| waiter.name == name) else {
                    return Ok(());
                };
                let Some(question) = waiter.asked else {
                    return Ok(());
                };
                let turn = waiter.answered(question, answer, now, limits.fault);
                if !limits.timers {
                    waiter.until = Moment::FAR;
                }
                self.turns(name.process, turn, limits)
            }
            Message::Extend(name, sent, ttl) => {
                let ours = self.serve(limits, &[name], |server, around| {
                    server.extend(0, name, ttl, around)
                })?;
                let tenure = self.processes[usize::from(name.process)].tenure.as_ref();
                let awaited = tenure.filter(|tenure| tenure.name == name);
                if awaited.is_some_and(|tenure| tenure.extending == Some((sent, ttl))) {
                    self.net.push(Message::Extended(name, sent, ttl, ours));
                }
                Ok(())
            }
            Message::Extended(name, sent, ttl, ours) => {
                let tenure = self.processes[usize::from(name.process)].tenure.as_ref();
                let awaited = tenure.filter(|tenure| tenure.name == name);
                if awaited.is_none_or(|tenure| tenure.extending != Some((sent, ttl))) {
                    return Ok(());
                }
                let answer = if ours {
                    Renewal::Extended
                } else {
                    Renewal::NotOurs
                };
                self.renewed(name.process, sent, answer, limits);
                Ok(())
            }
            Message::Release(name, fence) => {
                self.serve(limits, &[name], |server, around| {
                    server.release(0, name, fence, false, around)
                })?;
                self.given_back(name);
                Ok(())
            }
            Message::Vacate(name, fence) => {
                let before = self.server.look(0);
                self.serve(limits, &[name], |server, around| {
                    server.vacate(0, name, fence, around)
                })?;
                let after = self.server.look(0);
                if after.is_some() && after != before {
                    return Err(Wrong::GapFilled);
                }
                self.given_back(name);
                Ok(())
            }
            Message::Cool(name, fence) => self.cools(name, fence, limits),
            Message::LookAfter(process) => {
                let nobody = Name { process, lease: 0 };
                self.serve(limits, &[nobody], |server, around| {
                    server.release(0, nobody, None, true, around)
                })?;
                Ok(())
            }
            Message::Push(push) => self.push(push, limits),
        }
    }

    /// A question arrives; `refused`: at a server that writes nothing at the moment.
    pub(super) fn asked(
        &mut self,
        ask: Ask<Name>,
        round: u8,
        refused: bool,
        limits: &Limits,
    ) -> Result<(), Wrong> {
        let replaced = ask.replaces.map_or(ask.token, |(replaced, _)| replaced);
        let held =
            matches!(self.server.look(0), Some((value, _)) if value == Value::Held(replaced));
        let passed_over = held && replaced != ask.token && self.others_wait(ask.token.process);
        let answer = self.serve(limits, &[ask.token, replaced], |server, around| {
            around.refuses_writes = refused;
            server.acquire(0, ask, around)
        })?;
        if passed_over && matches!(answer, Answer::Granted(_)) {
            return Err(Wrong::PassedOverTheQueue);
        }
        let waiter = self.processes[usize::from(ask.token.process)]
            .waiter
            .as_ref();
        let awaited = waiter.filter(|waiter| waiter.name == ask.token);
        if awaited.is_some_and(|waiter| waiter.is_waiting_for(round, limits.fault)) {
            self.net.push(Message::Answer(ask.token, round, answer));
        }
        Ok(())
    }

    /// Whether another process, that can be told, waits for the lock.
    fn others_wait(&self, process: u8) -> bool {
        let mut waiting = self.server.keys[0].queue.iter();
        waiting.any(|one| {
            let other = one.token.process;
            other != process && self.processes[usize::from(other)].alive
        })
    }

    /// A cooldown arrives.
    fn cools(&mut self, name: Name, fence: Option<u64>, limits: &Limits) -> Result<(), Wrong> {
        let millis = limits.cooldown_millis.unwrap_or(0);
        // What it does is no harm to itself.
        let of_this = |cooling: &mut Cooling| cooling.name == name;
        let cooling = self.cooling.take_if(of_this);
        let released = self.serve(limits, &[name], |server, around| {
            server.cool(0, name, fence, millis, around)
        })?;
        let now = self.now();
        let process = &mut self.processes[usize::from(name.process)];
        if process.alive && std::mem::take(&mut process.cools_with_twin) {
            let at = now + LATE_DUPLICATE;
            process.twins.push(Twin { name, fence, at });
        }
        self.given_back(name);
        match cooling {
            Some(Cooling { ends: None, .. }) if released == Released::Yes => {
                let ends = Some(self.server.micros / 1_000 + millis);
                self.cooling = Some(Cooling { name, ends });
            }
            // A second time: it cools down already.
            Some(Cooling { ends: Some(_), .. }) => self.cooling = cooling,
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, push: Push<Name>, limits: &Limits) -> Result<(), Wrong> {
        let (Push::Given(name, ..) | Push::Next(name, _)) = push;
        if limits.has(Fault::SharedChannel) {
            // The other process hears it as well, and gives back what it did not ask for.
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
            let turn = waiter.hears(push, now, limits.fault);
            return self.turns(name.process, turn, limits);
        }
        if !process.knows(name) {
            match push {
                Push::Given(..) => self.net.push(Message::Release(name, None)),
                Push::Next(..) => {
                    self.serve(limits, &[name], |server, around| {
                        server.release(0, name, None, true, around)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// This process looks after the key when the grant is over.
    fn gives_away(&mut self, process: u8, limits: &Limits) {
        let over = self.now() + GIVEN;
        let process = &mut self.processes[usize::from(process)];
        if limits.timers && process.alive && !limits.has(Fault::NobodyLooksAfterAGivenKey) {
            process.gave = Some(over);
        }
    }

    /// The server runs a script of these tokens, and no other's key may be touched by it.
    pub(super) fn serve<R>(
        &mut self,
        limits: &Limits,
        tokens: &[Name],
        script: impl FnOnce(&mut Server<Name>, &mut Around<'_, Name>) -> R,
    ) -> Result<R, Wrong> {
        let processes = &self.processes;
        let listens = |name: Name| processes[usize::from(name.process)].alive;
        let mut around = Around {
            listens: &listens,
            pushes: Vec::new(),
            refuses_writes: false,
            fault: limits.fault,
        };
        let before = self.server.look(0);
        let reply = script(&mut self.server, &mut around);
        let theirs = |value: Value<Name>| match value {
            Value::Held(owner) => tokens.contains(&owner),
            Value::Cooling(_) | Value::Stranger => false,
        };
        let after = self.server.look(0);
        if before.is_some_and(|(value, _)| !theirs(value)) && after != before {
            return Err(Wrong::AnothersKeyTouched);
        }
        // Until the cooldown is there, the key stays with the lease that it comes after.
        let comes = |cooling: Cooling| cooling.ends.is_none().then_some(Value::Held(cooling.name));
        let comes_after = before.filter(|(value, _)| self.cooling.and_then(comes) == Some(*value));
        if comes_after.is_some_and(|(value, _)| after.map(|(value, _)| value) != Some(value)) {
            return Err(Wrong::CooldownCut);
        }
        for push in around.pushes {
            if let Push::Given(name, ..) = push {
                if !self.processes[usize::from(name.process)].alive {
                    return Err(Wrong::GivenToWhoHasGone);
                }
                self.gives_away(tokens[0].process, limits);
            }
            if limits.timers || matches!(push, Push::Given(..)) {
                self.net.push(Message::Push(push));
            }
        }
        Ok(reply)
    }
}
