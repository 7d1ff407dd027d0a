//! Servers of PostgreSQL.
//!
//! The ledger judges the keys of Redis servers. So beside each PostgreSQL server stands a Redis server that no process knows,
//! and each row is shown there as the keys that a Redis server would have.

use lock_core::cell_by_words as cell;

use super::{MICRO, State};
use crate::postgres::{Moment, Postgres};
use crate::server::{Bytes, Data, Entry};

/// The namespace of all keys.
const NAMESPACE: &[u8] = b"lockkit:";

impl State {
    /// Adds a PostgreSQL server. Its address is `10.0.0.<number>:5432`.
    pub fn add_postgres(&mut self, seed: u64) -> usize {
        let number = self.add_server();
        self.hosts[number].postgres = Some(Box::new(Postgres::new(seed)));
        number
    }

    fn moment(&self, server: usize) -> Moment {
        Moment {
            now: self.now,
            micros: self.server_time(server),
        }
    }

    /// Does something with a PostgreSQL server, and shows what it has changed. Returns whether it is one.
    pub(super) fn with_postgres(
        &mut self,
        server: usize,
        does: impl FnOnce(&mut Postgres, Moment),
    ) -> bool {
        let at = self.moment(server);
        let host = &mut self.hosts[server];
        let Some(it) = &mut host.postgres else {
            return false;
        };
        it.refusal = host.server.refusal;
        does(it, at);
        host.server.commands = it.statements;
        for (key, micros) in it.asked.drain(..) {
            host.server.asked.entry(key).or_default().push(micros);
        }
        let out = it.take_out();
        self.show_rows(server, at);
        self.spread(server);
        for (connection, bytes) in out {
            self.server_sends(connection, bytes);
        }
        true
    }

    /// Shows the rows that have changed.
    fn show_rows(&mut self, server: usize, at: Moment) {
        let Some(it) = &mut self.hosts[server].postgres else {
            return;
        };
        for key in it.table.take_changed() {
            let host = &mut self.hosts[server];
            let Some(it) = &host.postgres else { return };
            let name = key.strip_prefix(NAMESPACE).unwrap_or_default();
            let name = str::from_utf8(name).expect("a name");
            let row = it.table.row(&key);
            if name.starts_with("!h:") {
                let card = row.map(|row| Entry {
                    data: Data::Text(row.doc[1..].to_vec()),
                    ends: Some(row.ends / MICRO as i64),
                });
                host.server.show(at.micros, &key, card);
            }
            if name.is_empty() || name.starts_with('!') {
                continue;
            }
            let cell = row.and_then(|row| {
                let (rev, written) = (row.rev.cast_unsigned(), row.at.cast_unsigned());
                cell::read(name, &row.doc, rev, written)
            });
            let cell = cell.as_ref();
            let sorted = |(members, ends): (Vec<(String, f64)>, u64)| Entry {
                data: Data::Sorted(std::rc::Rc::new(members.into_iter().collect())),
                ends: Some(ends.cast_signed()),
            };
            let value = cell.and_then(|cell| cell.value(name));
            let queue = cell.and_then(|cell| cell.queue(name));
            let shares = cell.and_then(|cell| cell.shares(name));
            let rev = row.map_or(0, |row| row.rev);
            self.note(&[11, rev.cast_unsigned()], || {
                format!(
                    "s{server} {name} as {rev}: {value:?}, waiters {queue:?}, shares {shares:?}"
                )
            });
            let (queue, shares) = (queue.map(sorted), shares.map(sorted));
            let host = &mut self.hosts[server];
            let value = value.map(|(text, ends)| Entry {
                data: Data::Text(text.into_bytes()),
                ends: Some(ends.cast_signed()),
            });
            host.server.show(at.micros, &key, value);
            host.server.show(at.micros, &companion('q', name), queue);
            host.server.show(at.micros, &companion('s', name), shares);
        }
    }
}

/// The name of a queue, or of a set of shares.
fn companion(kind: char, key: &str) -> Bytes {
    let name = match key.contains('{') {
        true => format!("lockkit:!{kind}t:{key}"),
        false => format!("lockkit:!{kind}:{{{key}}}"),
    };
    name.into_bytes()
}
