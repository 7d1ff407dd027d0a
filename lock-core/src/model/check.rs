//! What must hold in every state of the model, and that everybody who waits gets there.

use super::process::Name;
use super::server::{Push, Value};
use super::world::{Cooling, Limits, Message, Step, World, Wrong};

impl Message {
    /// Whether it waits for this process to hear it.
    pub(super) fn is_for(&self, process: u8) -> bool {
        match self {
            Message::Answer(name, ..)
            | Message::Extended(name, ..)
            | Message::Push(Push::Given(name, ..) | Push::Next(name, _)) => name.process == process,
            Message::Ask(..)
            | Message::Extend(..)
            | Message::Release(..)
            | Message::Vacate(..)
            | Message::Cool(..)
            | Message::LookAfter(_) => false,
        }
    }

    /// The token in whose name something arrives, at the server or from it.
    fn looks_after(&self) -> Option<Name> {
        match self {
            Message::Release(name, _)
            | Message::Vacate(name, _)
            | Message::Cool(name, _)
            | Message::Push(Push::Given(name, ..)) => Some(*name),
            _ => None,
        }
    }
}

impl World {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let now = self.now();
        let tenures = self.processes.iter().filter_map(|one| one.tenure.as_ref());
        let mut windows = tenures.filter(|tenure| tenure.is_valid(now));
        if let Some(window) = windows.next() {
            if windows.next().is_some() {
                return Err(Wrong::TwoWindows);
            }
            let found = self.server.look(0).map(|(value, _)| value);
            if found != Some(Value::Held(window.name)) {
                return Err(Wrong::WindowWithoutTheKey);
            }
        }
        self.check_cooldown()?;
        let key = &self.server.keys[0];
        let holder = key.entry.and_then(|entry| match entry.value {
            Value::Held(name) => Some(name),
            Value::Cooling(_) | Value::Stranger => None,
        });
        let waiting = key.queue.iter().map(|waiting| waiting.token);
        let forgotten = holder
            .into_iter()
            .chain(waiting)
            .any(|name| !self.is_looked_after(name));
        if forgotten {
            return Err(Wrong::NobodyLooksAfterIt);
        }
        Ok(())
    }

    /// A key cools down to the end, neither shorter nor longer.
    fn check_cooldown(&self) -> Result<(), Wrong> {
        let Some(Cooling {
            name,
            ends: Some(ends),
        }) = self.cooling
        else {
            return Ok(());
        };
        let stands = self.server.keys[0].entry.filter(|entry| {
            entry.ends == ends && [Value::Cooling(name), Value::Held(name)].contains(&entry.value)
        });
        match stands {
            None if self.server.micros / 1_000 < ends => Err(Wrong::CooldownCut),
            _ => Ok(()),
        }
    }

    /// Whatever stands in the store is somebody's, or is about to be undone.
    fn is_looked_after(&self, name: Name) -> bool {
        let process = &self.processes[usize::from(name.process)];
        !process.alive
            || self.cooling.is_some_and(|cooling| cooling.name == name)
            || process.waiter.as_ref().is_some_and(|one| one.name == name)
            || process.tenure.as_ref().is_some_and(|one| one.name == name)
            || process.twins.iter().any(|twin| twin.name == name)
            || self
                .net
                .iter()
                .any(|message| message.looks_after() == Some(name))
    }

    /// For how many ticks anybody still waits from here on, if all goes well, and if it goes well for
    /// all processes but one, which stands still. One that only waits costs its grant; one that has
    /// the lock, or may get it, costs the lease.
    pub(super) fn longest_wait(&self, limits: &Limits) -> Result<u64, Wrong> {
        let mut longest = self.comes_to_rest(0, limits)?;
        let mut with_a_lease = 0;
        for index in 0..limits.processes {
            let waited = self.comes_to_rest(1 << index, limits)?;
            if self.only_waits(index) {
                longest = longest.max(waited);
            } else {
                with_a_lease = with_a_lease.max(waited);
            }
        }
        if longest > limits.longest_wait
            || with_a_lease > limits.longest_wait + limits.ttl_millis / 1_000 + 1
        {
            return Err(Wrong::WaitsForEver);
        }
        Ok(longest)
    }

    fn only_waits(&self, index: u8) -> bool {
        let asks = |message: &Message| match message {
            Message::Ask(ask, ..) => ask.token.process == index,
            _ => false,
        };
        let holds =
            matches!(self.server.look(0), Some((Value::Held(owner), _)) if owner.process == index);
        !holds && !self.net.iter().any(asks)
    }

    /// Nothing goes wrong any more, whoever holds the lock gives it back, and the processes in
    /// `stopped` do nothing at all: for how many ticks does anybody of the others still wait?
    pub(super) fn comes_to_rest(&self, stopped: u8, limits: &Limits) -> Result<u64, Wrong> {
        let mut world = self.clone();
        let mut ticks = 0;
        loop {
            while let Some(step) = world.calm_step(stopped) {
                world = world.after(step, limits)?;
            }
            let waits = |index: u8| {
                let process = &world.processes[usize::from(index)];
                process.alive && (process.waiter.is_some() || process.line > 0)
            };
            if !(0..limits.processes).any(|index| (stopped >> index) & 1 == 0 && waits(index)) {
                return Ok(ticks);
            }
            if ticks > 200 {
                return Err(Wrong::WaitsForEver);
            }
            ticks += 1;
            world = world.after(Step::Tick(limits.rates[0]), limits)?;
        }
    }

    fn calm_step(&self, stopped: u8) -> Option<Step> {
        let now = self.now();
        let runs = |index: u8| (stopped >> index) & 1 == 0;
        let running = (0..)
            .zip(&self.processes)
            .filter(|(index, process)| process.alive && runs(*index));
        let stands_still =
            |message: &Message| (0..8).any(|index| !runs(index) && message.is_for(index));
        if let Some(index) = self.net.iter().position(|message| !stands_still(message)) {
            return Some(Step::Deliver(index));
        }
        for (index, process) in running {
            if process.tenure.is_some() {
                return Some(Step::End(index));
            }
            let twin = process.twins.first();
            if twin.is_some_and(|twin| twin.at <= now) || process.gave.is_some_and(|at| at <= now) {
                return Some(Step::Look(index));
            }
            // All messages have arrived: a question that is still open got lost.
            if let Some(waiter) = &process.waiter
                && (waiter.asked.is_some() || waiter.until <= now)
            {
                return Some(Step::AskAgain(index));
            }
        }
        None
    }
}
