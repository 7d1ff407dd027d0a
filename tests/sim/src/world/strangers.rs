//! Clients that are no process of the history: they run on the machine of a server, so no network is between.

use super::events::Event;
use super::{Fault, MICRO, MILLI, State};
use crate::server::{Bytes, Data, Role};

/// The connection of all strangers. No process has so many.
const CONNECTION: usize = usize::MAX;
/// The time between two changes of a stranger.
const BEAT: u64 = 20 * MILLI;
/// More than one script removes.
const DEAD_WAITERS: usize = 1_100;

impl State {
    /// Runs a command of a stranger. `None`: the server does not answer now.
    pub fn stranger_runs(&mut self, server: usize, words: &[&[u8]]) -> Option<Bytes> {
        if !self.hosts[server].is_up || self.hosts[server].is_stopped() {
            return None;
        }
        let time = self.server_time(server);
        let words: Vec<Bytes> = words.iter().map(|word| word.to_vec()).collect();
        let mut out = Bytes::new();
        let it = &mut self.hosts[server].server;
        it.run(CONNECTION, time, &words, &mut out);
        self.after_stranger(server);
        Some(out)
    }

    /// A replica refuses the deletion.
    pub(super) fn stranger_deletes(&mut self, server: usize, key: &[u8]) {
        if self.hosts[server].server.role != Role::Master {
            return;
        }
        self.hosts[server].server.delete(key);
        self.with_postgres(server, |postgres, at| postgres.table.put(at.now, key, None));
        self.after_stranger(server);
    }

    pub(super) fn put_other_type(&mut self, number: usize, server: usize, key: &[u8]) {
        let millis = self.server_time(server) / 1_000;
        let it = &mut self.hosts[server].server;
        if it.entry(key).is_none_or(|entry| entry.is_over(millis)) {
            it.put_hash(key);
            self.strangers.insert(number);
            self.after_stranger(server);
        }
    }

    pub(super) fn delete_other_type(&mut self, number: usize, server: usize, key: &[u8]) {
        if !self.strangers.remove(&number) {
            return;
        }
        let entry = self.hosts[server].server.entry(key);
        let is_there = matches!(entry, Some(entry) if matches!(entry.data, Data::Hash(_)));
        self.overwritten |= !is_there;
        if is_there {
            self.stranger_deletes(server, key);
        }
    }

    /// Returns whether a key is one of another type that a stranger has put there, and has not deleted yet.
    pub fn is_of_another_type(&self, server: usize, key: &[u8]) -> bool {
        let is_its = |number: &usize| {
            let fault = &self.faults[*number].fault;
            matches!(fault, Fault::OtherType { key: its, .. } if its == key)
                && fault.server() == Some(server)
        };
        let entry = self.hosts[server].server.entry(key);
        matches!(entry, Some(entry) if matches!(entry.data, Data::Hash(_)))
            && self.strangers.iter().any(is_its)
    }

    fn after_stranger(&mut self, server: usize) {
        self.hosts[server].is_strange = true;
        self.after_operator(server);
        self.hosts[server].is_strange = false;
    }

    /// Deletes a key that was renewed a moment ago, if a stranger waits for that.
    pub(super) fn strike_soon(&mut self, server: usize, key: &[u8]) {
        if self.hosts[server].strikes.contains(key) {
            let at = self.now + 1 + self.rng.below(50 * MICRO);
            let key = key.to_vec();
            self.at(at, Event::Strikes { server, key });
        }
    }

    pub(super) fn touch(&mut self, number: usize) {
        let planned = self.faults[number].clone();
        let Fault::Touch { server, key } = planned.fault else {
            return;
        };
        let time = self.server_time(server);
        self.hosts[server].server.lengthen(&key, time);
        self.after_stranger(server);
        if self.now + BEAT < planned.at + planned.lasts {
            self.at(self.now + BEAT, Event::Touches(number));
        }
    }

    /// Raises all registers that a node of a quorum has.
    pub(super) fn spoil(&mut self, server: usize) {
        let registers = b"lockkit:!r".as_slice();
        let entry = self.hosts[server].server.entry(registers);
        let Some(Data::Hash(fields)) = entry.map(|entry| entry.data.clone()) else {
            return;
        };
        let is_register = |field: &&Bytes| field.iter().all(u8::is_ascii_digit);
        for field in fields.keys().filter(is_register) {
            let value = [b"9500000000000000".as_slice(), &fields[field][16..]].concat();
            self.stranger_runs(server, &[b"HSET".as_slice(), registers, field, &value]);
        }
    }

    /// Puts waiters before all others whose processes are gone.
    pub(super) fn add_dead_waiters(&mut self, server: usize, key: &[u8]) {
        let queue = match key.contains(&b'{') {
            true => [b"lockkit:!qt:".as_slice(), &key[8..]].concat(),
            false => [b"lockkit:!q:{".as_slice(), &key[8..], b"}"].concat(),
        };
        let entries: Vec<[Bytes; 2]> = (1..=DEAD_WAITERS)
            .map(|number| {
                let entry = format!("{:016x}/{:032x} 5000", u64::MAX, number);
                [number.to_string().into_bytes(), entry.into_bytes()]
            })
            .collect();
        let mut words: Vec<&[u8]> = vec![b"ZADD".as_slice(), &queue];
        words.extend(entries.iter().flatten().map(Vec::as_slice));
        self.stranger_runs(server, &words);
        self.stranger_runs(server, &[b"PEXPIRE".as_slice(), &queue, b"60000"]);
    }
}
