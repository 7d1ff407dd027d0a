//! The invariants of every state, and the check that every waiter gets in.

use std::iter;

use super::fault::ShareFault;
use super::server::{id_of, tick};
use super::steps::ShareStep;
use super::world::{
    ClientPhase, Id, Question, ShareClient, ShareLimits, ShareWorld, ShareWrong, Time, Wanted,
};
use crate::protocol::Phase;

impl ShareWorld {
    pub(super) fn check(&self, limits: &ShareLimits) -> Result<(), ShareWrong> {
        // Owners learn of a deletion at their next renewal.
        if self.deletions < limits.deletions {
            return Ok(());
        }
        let owners = limits.ids().filter(|id| {
            let client = self.clients[usize::from(*id)];
            client.phase == ClientPhase::Holding && self.now < client.until
        });
        let is_live = self
            .document
            .ends()
            .is_some_and(|ends| self.millis() <= ends);
        let (mut count, mut exclusive, mut most, mut readers) = (0, false, 0, 0);
        for id in owners {
            let until = self.clients[usize::from(id)].until;
            let share = |token| id_of(token) == id;
            match &self.document.phase {
                Phase::Held(hold) if is_live && share(hold.token) => {
                    if tick(hold.ends) < until {
                        return Err(ShareWrong::OwnerWithoutKey);
                    }
                }
                Phase::Shared(shares) if is_live => {
                    let Some(place) = shares.inside.iter().find(|it| share(it.token)) else {
                        return Err(ShareWrong::OwnerWithoutKey);
                    };
                    if tick(place.ends.min(shares.ends)) < until {
                        return Err(ShareWrong::OwnerOutlivesItsShare);
                    }
                }
                _ => return Err(ShareWrong::OwnerWithoutKey),
            }
            count += 1;
            readers += usize::from(limits.is_reader(id));
            match limits.wanted(id) {
                Wanted::Exclusive => exclusive = true,
                Wanted::Share(limit) => most = most.max(limit),
            }
        }
        if exclusive && count > 1 {
            return Err(ShareWrong::ExclusiveBesideAnother);
        }
        if !exclusive && readers > 0 && readers < usize::from(count) {
            return Err(ShareWrong::ReaderBesidePermit);
        }
        if !exclusive && count > most {
            return Err(ShareWrong::TooManyOwners);
        }
        // At the time zero nothing has ended, so a waiter that fits has been let in once all messages have arrived.
        let looks = !limits.has_failures() && !limits.has(ShareFault::NewcomersFirst);
        if looks && self.now == 0 && self.net.is_empty() && self.leaves_room() {
            return Err(ShareWrong::RoomIsLeft);
        }
        Ok(())
    }

    /// Returns the ticks until no client waits any more, with all clients and with each one standing still.
    pub(super) fn longest_wait(&self, limits: &ShareLimits) -> Result<Time, ShareWrong> {
        let mut longest = self.ticks_to_rest(None, false, limits)?;
        for stopped in iter::once(None).chain(limits.ids().map(Some)) {
            longest = longest.max(self.ticks_to_rest(stopped, true, limits)?);
        }
        Ok(longest)
    }

    /// Nothing fails any more, every owner releases its lock, and the process `stopped` does nothing. `plainly`: as
    /// [`ShareStep::ReleasePlainly`].
    fn ticks_to_rest(
        &self,
        stopped: Option<Id>,
        plainly: bool,
        limits: &ShareLimits,
    ) -> Result<Time, ShareWrong> {
        // A client that stands still leaves room, as one that gives up.
        let limits = &ShareLimits {
            gives_up: true,
            ..limits.clone()
        };
        let runs = |id: &Id| stopped.is_none_or(|stopped| !limits.is_one_process(stopped, *id));
        let mut world = self.clone();
        world.losses = 0;
        world.doubles = 0;
        loop {
            for id in limits.ids().filter(|id| !runs(id)) {
                world.forget_answers(id);
            }
            let waits = |id: Id| match world.phase(id) {
                ClientPhase::Idle | ClientPhase::Done | ClientPhase::Dead => false,
                _ => runs(&id),
            };
            if !limits.ids().any(waits) {
                return Ok(world.now - self.now);
            }
            if let Some(step) = world.calm_step(runs, plainly, limits) {
                world = world.after(step, limits)?;
            } else if !world.repeats_what_was_lost(runs, limits) {
                if world.now - self.now > 40 {
                    return Err(ShareWrong::WaitsForever);
                }
                world.now += 1;
                world.check(limits)?;
            }
        }
    }

    fn calm_step(
        &self,
        runs: impl Fn(&Id) -> bool,
        plainly: bool,
        limits: &ShareLimits,
    ) -> Option<ShareStep> {
        if let Some(message) = self.net.first() {
            return Some(ShareStep::Deliver(*message));
        }
        limits
            .ids()
            .filter(runs)
            .find_map(|id| match self.phase(id) {
                ClientPhase::Holding if plainly && limits.is_exclusive(id) => {
                    Some(ShareStep::ReleasePlainly(id))
                }
                ClientPhase::Holding => Some(ShareStep::Release(id)),
                _ if self.may_ask(id) => Some(ShareStep::AskAgain(id)),
                _ => None,
            })
    }

    /// All messages have arrived, so a question without an answer was lost. Returns whether there was one.
    fn repeats_what_was_lost(&mut self, runs: impl Fn(&Id) -> bool, limits: &ShareLimits) -> bool {
        for id in limits.ids().filter(runs) {
            let now = self.now;
            let client = self.client(id);
            let asked = client.phase == ClientPhase::First
                || (client.phase == ClientPhase::Waiting && client.question == Question::Asked);
            if asked {
                *client = ShareClient {
                    until: now.max(1),
                    ..ShareClient::new(ClientPhase::Waiting)
                };
                // At the time zero it asks in the next tick.
                return now > 0;
            }
            if client.phase == ClientPhase::Releasing {
                let fence = client.fence;
                self.sends_release(id, fence, limits);
                return true;
            }
            if self.awaits_swap(id, limits) {
                self.undoes_swap(id, limits);
                return true;
            }
        }
        false
    }

    /// Delivers all messages.
    pub(super) fn settled(mut self, limits: &ShareLimits) -> Result<Self, ShareWrong> {
        while let Some(message) = self.net.first().copied() {
            self = self.after(ShareStep::Deliver(message), limits)?;
        }
        Ok(self)
    }
}
