//! The invariants of every state of the model, and the check that every waiter gets the lock.

use super::message::{Name, Push};
use super::server::Value;
use super::world::{Cooling, Limits, Message, Step, World, Wrong};

impl Message {
    /// Returns whether the message is on its way to this process.
    pub(super) fn is_for(&self, process: u8) -> bool {
        match self {
            Message::AcquireReply(name, ..)
            | Message::Extended(name, ..)
            | Message::Push(Push::HandedOver(name, ..) | Push::Next(name, _)) => {
                name.process == process
            }
            Message::Ask(..)
            | Message::Extend(..)
            | Message::Release(..)
            | Message::Vacate(..)
            | Message::Cool(..)
            | Message::Remember(..)
            | Message::CheckQueue(_) => false,
        }
    }

    /// Returns the token that this message will release, or for which it brings the key.
    fn attended_token(&self) -> Option<Name> {
        match self {
            Message::Release(name, _)
            | Message::Vacate(name, _)
            | Message::Cool(name, _)
            | Message::Remember(name, _)
            | Message::Push(Push::HandedOver(name, ..)) => Some(*name),
            _ => None,
        }
    }
}

impl World {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let now = self.now();
        let owned = self.processes.iter().filter_map(|one| one.owned.as_ref());
        let mut windows = owned.filter(|owned| owned.is_valid(now));
        if let Some(window) = windows.next() {
            if windows.next().is_some() {
                return Err(Wrong::TwoOwners);
            }
            let found = self.server.current().map(|(value, _)| value);
            if found != Some(Value::Held(window.name)) {
                return Err(Wrong::OwnerWithoutKey);
            }
        }
        self.check_cooldown()?;
        let (holder, recorded) = match self.server.current() {
            Some((Value::Held(name), _)) => (Some(name), false),
            Some((Value::Done(_), _)) => (None, true),
            Some((Value::Cooling(_) | Value::ForeignOwner, _)) | None => (None, false),
        };
        if recorded && !self.server.document.queue.is_empty() {
            return Err(Wrong::QueuedBehindRecord);
        }
        let waiting = self.server.waiting().map(|(name, _)| name);
        let forgotten = holder
            .into_iter()
            .chain(waiting)
            .any(|name| !self.is_attended(name));
        if forgotten {
            return Err(Wrong::Abandoned);
        }
        Ok(())
    }

    /// Checks that a cooldown ends neither early nor late.
    fn check_cooldown(&self) -> Result<(), Wrong> {
        let Some(Cooling {
            name,
            ends: Some(ends),
        }) = self.cooling
        else {
            return Ok(());
        };
        let now = self.server.millis();
        let stands = self.server.current().is_some_and(|(value, left)| {
            let values = [Value::Cooling(name), Value::Held(name), Value::Done(name)];
            now + left == ends && values.contains(&value)
        });
        match !stands && now < ends {
            true => Err(Wrong::CooldownCut),
            false => Ok(()),
        }
    }

    /// Returns whether the token has an owner or a waiter, or is being undone.
    fn is_attended(&self, name: Name) -> bool {
        let process = &self.processes[usize::from(name.process)];
        !process.alive
            || self.cooling.is_some_and(|cooling| cooling.name == name)
            || process.waiter.as_ref().is_some_and(|one| one.name == name)
            || process.owned.as_ref().is_some_and(|one| one.name == name)
            || process
                .late_duplicates
                .iter()
                .any(|late_duplicate| late_duplicate.name == name)
            || self
                .net
                .iter()
                .any(|message| message.attended_token() == Some(name))
    }

    /// Returns the ticks that any waiter still waits from here, if nothing else fails.
    ///
    /// The check runs once with all processes, and once for each process with that process stopped.
    /// A stopped process that only waits costs its grant. A stopped process that has the lock, or
    /// may get it, costs the lease.
    pub(super) fn longest_wait(&self, limits: &Limits) -> Result<u64, Wrong> {
        let mut longest = self.ticks_to_rest(0, limits)?;
        let mut with_a_lease = 0;
        for index in 0..limits.processes {
            let waited = self.ticks_to_rest(1 << index, limits)?;
            if self.only_waits(index) {
                longest = longest.max(waited);
            } else {
                with_a_lease = with_a_lease.max(waited);
            }
        }
        if longest > limits.longest_wait
            || with_a_lease > limits.longest_wait + limits.ttl_millis / 1_000 + 1
        {
            return Err(Wrong::WaitsForever);
        }
        Ok(longest)
    }

    fn only_waits(&self, index: u8) -> bool {
        let asks = |message: &Message| match message {
            Message::Ask(ask, ..) => ask.token.process == index,
            _ => false,
        };
        let holds = matches!(self.server.current(), Some((Value::Held(owner), _)) if owner.process == index);
        !holds && !self.net.iter().any(asks)
    }

    /// Returns the ticks until no running process waits any more.
    ///
    /// Nothing fails from here on, every owner releases the lock, and the processes in `stopped` do
    /// nothing at all.
    pub(super) fn ticks_to_rest(&self, stopped: u8, limits: &Limits) -> Result<u64, Wrong> {
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
                return Err(Wrong::WaitsForever);
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
            if process.owned.is_some() {
                return Some(Step::End(index));
            }
            let late_duplicate = process.late_duplicates.first();
            if late_duplicate.is_some_and(|late_duplicate| late_duplicate.at <= now)
                || process.handed_over_until.is_some_and(|at| at <= now)
            {
                return Some(Step::RunKeeper(index));
            }
            // All messages have arrived, so a request without an answer was lost.
            if let Some(waiter) = &process.waiter
                && (waiter.asked.is_some() || waiter.until <= now)
            {
                return Some(Step::AskAgain(index));
            }
        }
        None
    }
}
