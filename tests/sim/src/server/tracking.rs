//! `CLIENT TRACKING`: reports to clients that a key has changed which they have read.

use super::resp::{Protocol, Reply, write_push};
use super::{BEFORE, Bytes, LAST, Server};

/// How a client has the server watch keys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tracking {
    /// `OPTIN`: only the keys behind a `CLIENT CACHING YES`.
    pub(super) asks_first: bool,
    /// `NOLOOP`: without the changes that the client makes itself.
    pub(super) skips_own: bool,
}

impl Server {
    /// Returns whether the server watches the keys that the present command reads.
    pub(super) fn is_watching(&mut self) -> bool {
        let session = self.session();
        let tracking = session.tracking;
        tracking.is_some_and(|tracking| !tracking.asks_first || session.caching)
    }

    /// Notes that the present client has read these keys.
    pub(super) fn watch(&mut self, keys: &[&[u8]]) {
        if !self.is_watching() {
            return;
        }
        let declared = self
            .script
            .as_ref()
            .and_then(|script| script.watched.clone());
        let keys = match declared {
            Some(declared) => declared,
            None => keys.iter().map(|key| key.to_vec()).collect(),
        };
        let id = self.session().id;
        for key in keys {
            self.watched.entry(key).or_default().insert(id);
        }
    }

    /// Reports a change to the clients that have read the key. Each is told once, and has to read the key again to be told
    /// of the next change.
    pub(super) fn invalidate(&mut self, key: &[u8]) {
        if self.watched.is_empty() {
            return;
        }
        let Some(readers) = self.watched.remove(key) else {
            return;
        };
        let told = self.sessions.iter().filter(|(conn, session)| {
            let is_own = Some(**conn) == self.current;
            readers.contains(&session.id)
                && session
                    .tracking
                    .is_some_and(|tracking| !(tracking.skips_own && is_own))
        });
        let told: Vec<usize> = told.map(|(conn, _)| *conn).collect();
        let keys = Reply::Array(vec![Reply::text(key)]);
        self.report(&told, keys, LAST);
    }

    /// Reports the deletion of all data to each client that tracks at all.
    pub(super) fn invalidate_all(&mut self) {
        self.watched.clear();
        let told = self.sessions.iter();
        let told = told.filter(|(_, session)| session.tracking.is_some());
        let told: Vec<usize> = told.map(|(conn, _)| *conn).collect();
        let place = match self.version.tells_of_flush_first() {
            true => BEFORE,
            false => LAST,
        };
        self.report(&told, Reply::Null, place);
    }

    fn report(&mut self, told: &[usize], keys: Reply, place: usize) {
        let push = [Reply::text("invalidate"), keys];
        for conn in told {
            if self.sessions[conn].protocol == Protocol::Resp2 {
                continue;
            }
            let mut bytes = Bytes::new();
            write_push(&push, Protocol::Resp3, &mut bytes);
            if Some(*conn) == self.current {
                self.own[place].append(&mut bytes);
            } else {
                self.pushes.push((*conn, bytes));
            }
        }
    }
}
