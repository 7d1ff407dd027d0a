//! A slot moves from one master of a cluster to another: step by step, as an operator's tool moves it.

use super::cluster::News;
use super::events::Event;
use super::{MILLI, State};

/// The pause before a step that a node could not do.
const AGAIN: u64 = 20 * MILLI;
/// How many keys move one by one at most, before the rest does.
const ONE_BY_ONE: u32 = 4;

/// A move that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    slot: usize,
    from: usize,
    to: usize,
    /// The new owner is the last node that is told.
    in_dispute: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The source is told, when the target knows of the move.
    Begin,
    /// One of the keys moves.
    MoveOne,
    /// All that is left moves, and the nodes are told of the new owner until this time.
    End(u64),
}

impl State {
    /// Begins to move a slot to the next master, or `further`. The move lasts about so long.
    pub(super) fn move_slot(&mut self, slot: usize, further: usize, in_dispute: bool, lasts: u64) {
        let masters: Vec<usize> = self.masters().collect();
        let owns = |node: &usize| self.owns(*node, slot);
        let Some(place) = masters.iter().position(owns) else {
            return;
        };
        let to = masters[(place + 1 + further) % masters.len()];
        let from = masters[place];
        if from == to || self.is_moving(slot) || !self.is_well(from) || !self.is_well(to) {
            return;
        }
        self.note(&[12, slot as u64, to as u64], || {
            format!("slot {slot} moves from s{from} to s{to}")
        });
        self.view(to).takes(slot);
        let it = Move {
            slot,
            from,
            to,
            in_dispute,
        };
        let begin = self.now + self.rng.below(lasts / 8);
        let end = self.now + lasts * 3 / 4;
        self.plan_step(begin, it, Step::Begin);
        for _ in 0..ONE_BY_ONE {
            let time = begin + self.rng.below(end - begin);
            self.plan_step(time, it, Step::MoveOne);
        }
        let all_know = self.now + lasts;
        self.plan_step(end, it, Step::End(all_know));
    }

    fn plan_step(&mut self, time: u64, it: Move, step: Step) {
        self.at(time, Event::Move(it, step));
    }

    fn owns(&self, node: usize, slot: usize) -> bool {
        let cluster = self.hosts[node].server.cluster.as_deref();
        cluster.is_some_and(|it| it.owner(slot) == Some(node))
    }

    fn is_moving(&self, slot: usize) -> bool {
        let clusters = self.hosts.iter();
        let mut clusters = clusters.filter_map(|host| host.server.cluster.as_deref());
        clusters.any(|it| it.is_importing(slot) || it.target(slot).is_some())
    }

    pub(super) fn move_on(&mut self, it: Move, step: Step) {
        let Move {
            slot,
            from,
            to,
            in_dispute,
        } = it;
        match self.view(from).owner(slot) {
            Some(owner) if owner == from => {}
            // The move has ended before this step, which had to wait.
            Some(owner) if owner == to => return,
            // Another node has taken its place.
            _ => {
                self.view(to).settle(slot);
                return;
            }
        }
        if !self.is_well(from) || !self.is_well(to) {
            self.plan_step(self.now + AGAIN, it, step);
            return;
        }
        match step {
            Step::Begin => self.view(from).gives(slot, to),
            Step::MoveOne => {
                let mut keys = self.hosts[from].server.keys_in(slot);
                if !keys.is_empty() && self.view(from).target(slot).is_some() {
                    let key = keys.swap_remove(self.rng.index(keys.len()));
                    self.migrate(&key, from, to);
                }
            }
            Step::End(all_know) => {
                self.view(from).gives(slot, to);
                for key in self.hosts[from].server.keys_in(slot) {
                    self.migrate(&key, from, to);
                }
                self.announce(slot, to, in_dispute, all_know);
            }
        }
    }

    /// Moves one key, as `MIGRATE` does.
    fn migrate(&mut self, key: &[u8], from: usize, to: usize) {
        self.note(&[13, from as u64, to as u64], || {
            let key = String::from_utf8_lossy(key);
            format!("{key} moves from s{from} to s{to}")
        });
        let (here, there) = (self.server_time(from), self.server_time(to));
        if let Some((data, left)) = self.hosts[from].server.give_away(key, here) {
            self.hosts[to].server.take_in(key, data, left, there);
        }
        for node in [from, to] {
            self.spread(node);
            self.send_pushes(node);
        }
    }

    /// Tells each node of the new owner of a slot: the new owner first, or last.
    fn announce(&mut self, slot: usize, owner: usize, in_dispute: bool, all_know: u64) {
        let epoch = self.raised_epoch(owner);
        let left = all_know.saturating_sub(self.now);
        for node in 0..self.hosts.len() {
            let after = match node == owner {
                true if in_dispute => left,
                true => 0,
                false => self.rng.below(left),
            };
            let slots = vec![slot];
            let news = News::Owner {
                slots,
                owner,
                epoch,
            };
            self.send_news(node, node, self.now + after, news);
        }
    }

    /// The epoch of a node that takes slots over: a new one, unless its own is the highest already.
    pub(super) fn raised_epoch(&mut self, node: usize) -> u64 {
        let clusters = self.hosts.iter();
        let clusters = clusters.filter_map(|host| host.server.cluster.as_deref());
        let highest = clusters.map(|it| it.epoch).max().unwrap_or(0);
        match self.view(node).own_epoch() {
            own if own == highest => own,
            _ => highest + 1,
        }
    }
}
