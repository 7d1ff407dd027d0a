//! Failovers: a replica is promoted, sentinels learn of it, and the former master becomes a replica.
//!
//! The former master goes on as a master until it is demoted, as it does under real sentinels for some seconds.

use super::events::Event;
use super::servers::address;
use super::{MILLI, SECOND, State};
use crate::server::{Role, Sentinel};

/// The service whose master the sentinels watch.
pub const SERVICE: &str = "mymaster";
/// The epoch of the first configuration.
const FIRST_EPOCH: u64 = 3;

/// The master of the history, and how it changed.
#[derive(Default)]
pub struct Service {
    pub master: usize,
    epoch: u64,
    pub switches: Vec<Switch>,
    /// When former masters have given up their data.
    pub demoted: Vec<u64>,
}

impl Service {
    /// The master at a time.
    pub fn master_at(&self, time: u64) -> usize {
        let later = self.switches.iter().find(|switch| switch.at > time);
        later.map_or(self.master, |switch| switch.from)
    }
}

/// One change of the master.
#[derive(Clone, Debug)]
pub struct Switch {
    pub at: u64,
    pub from: usize,
    pub to: usize,
    /// The sentinels that know of it, and since when.
    pub told: Vec<(usize, u64)>,
}

/// The part of a server in failovers.
#[derive(Default)]
pub(super) struct Part {
    /// A master that is to become a replica.
    is_demoted: bool,
    /// How many reasons keep a sentinel from hearing of failovers.
    deaf: u32,
}

impl State {
    pub fn add_sentinel(&mut self) -> usize {
        let host = self.add_server();
        self.service.epoch = FIRST_EPOCH;
        self.hosts[host].server.sentinel = Some(self.configuration());
        host
    }

    fn configuration(&self) -> Sentinel {
        Sentinel {
            service: SERVICE.to_owned(),
            host: address(self.service.master),
            port: 6379,
            epoch: self.service.epoch,
        }
    }

    /// Makes a replica the master, unless it does not run.
    pub(super) fn promote(&mut self, to: usize) {
        let from = self.service.master;
        if !self.runs(to) || self.hosts[to].follows.master.is_none() {
            return;
        }
        self.leave_master(to);
        self.hosts[to].server.role = Role::Master;
        self.service.master = to;
        self.service.epoch += 1;
        self.service.switches.push(Switch {
            at: self.now,
            from,
            to,
            told: Vec::new(),
        });
        self.note_keys(to);
        // Sentinels end the clients of a server whose role they change.
        self.disconnect_clients(to);
        for server in 0..self.hosts.len() {
            let host = &self.hosts[server];
            let longest = match (host.server.sentinel.is_some(), host.follows.master) {
                // They tell each other every two seconds.
                (true, _) if self.rng.percent(20) => SECOND,
                (true, _) => 200 * MILLI,
                (false, Some(_)) => 200 * MILLI,
                (false, None) => continue,
            };
            let at = self.now + self.rng.below(longest);
            self.at(at, Event::Obeys { server });
        }
    }

    /// Makes replicas of all masters that are no longer the master of the service.
    pub(super) fn demote_former_masters(&mut self) {
        for server in 0..self.hosts.len() {
            let host = &mut self.hosts[server];
            let is_replica = host.follows.master.is_some();
            if host.server.sentinel.is_none() && !is_replica && server != self.service.master {
                host.part.is_demoted = true;
                self.obey(server);
            }
        }
    }

    /// Has a server take over what has changed: a sentinel the newest configuration, a replica its new master.
    pub(super) fn obey(&mut self, server: usize) {
        if !self.runs(server) {
            return;
        }
        let master = self.service.master;
        let host = &mut self.hosts[server];
        if host.server.sentinel.is_some() {
            if host.part.deaf == 0 {
                self.learn(server);
            }
            return;
        }
        let is_demoted = std::mem::take(&mut host.part.is_demoted);
        let strays = host.follows.master.is_some_and(|its| its != master);
        if server == master || !is_demoted && !strays {
            return;
        }
        if is_demoted {
            self.service.demoted.push(self.now);
        }
        self.forget_keys(server);
        self.follow(server, master);
        // Where an operator does it by hand, the clients stay.
        if self.rng.percent(70) {
            self.disconnect_clients(server);
        }
    }

    fn learn(&mut self, sentinel: usize) {
        let newest = self.configuration();
        let known = self.hosts[sentinel].server.sentinel.as_mut();
        let known = known.expect("a sentinel");
        if known.epoch == newest.epoch {
            return;
        }
        let epoch = newest.epoch;
        *known = newest;
        if let Some(switch) = self.service.switches.last_mut() {
            switch.told.push((sentinel, self.now));
        }
        self.note(&[11, sentinel as u64, epoch], || {
            format!("s{sentinel} knows the master of epoch {epoch}")
        });
    }

    pub(super) fn isolate_sentinel(&mut self, sentinel: usize) {
        self.hosts[sentinel].part.deaf += 1;
    }

    pub(super) fn rejoin_sentinel(&mut self, sentinel: usize) {
        self.hosts[sentinel].part.deaf -= 1;
        self.obey(sentinel);
    }

    /// Has all sentinels count their configurations from zero, as sentinels do that are set up anew.
    pub(super) fn reset_sentinels(&mut self) {
        self.service.epoch = 0;
        let newest = self.configuration();
        for host in &mut self.hosts {
            if let Some(known) = &mut host.server.sentinel {
                known.clone_from(&newest);
            }
        }
    }
}
