//! Connections: segments that take their time, are held back, or are lost with the connection.
//!
//! The order of bytes is kept in each direction of a connection, and nowhere else.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

use super::events::Event;
use super::link::readable;
use super::{MILLI, SECOND, State, hash};
use crate::postgres::renamed;
use crate::server::Bytes;

/// `TCP_USER_TIMEOUT`, as the kit sets it.
const UNACKNOWLEDGED: u64 = 5 * SECOND;
/// The longest pause before a sender tries again after a partition.
pub const RETRANSMISSION: u64 = 200 * MILLI;

#[derive(Default)]
pub(super) struct Connection {
    pub(super) process: usize,
    pub(super) server: usize,
    pub(super) dialed: u64,
    requests: Direction,
    replies: Direction,
    /// What the client can read.
    pub(super) received: VecDeque<u8>,
    pub(super) reader: Option<Waker>,
    pub(super) failed: Option<io::ErrorKind>,
    pub(super) is_connected: bool,
    /// The client has closed its side.
    is_closed: bool,
    /// The server knows the connection.
    pub(super) is_at_server: bool,
    /// Bytes of a command that is not complete.
    pub(super) input: Bytes,
    /// Commands behind one that blocks.
    pub(super) commands: VecDeque<Vec<Bytes>>,
    /// The names of prepared statements.
    statements: Vec<Bytes>,
    /// Requests that arrive after this time are lost.
    lost_after: u64,
}

#[derive(Default)]
struct Direction {
    /// When the last segment arrives.
    last: u64,
    held: VecDeque<Bytes>,
    /// How many faults hold this direction of this connection.
    frozen: u32,
    /// The end of the stream follows what is held.
    ends: bool,
}

impl State {
    /// Begins to connect. Returns the connection's number.
    pub fn dial(&mut self, process: usize, server: usize) -> usize {
        let connection = self.connections.len();
        self.connections.push(Connection {
            process,
            server,
            dialed: self.now,
            lost_after: u64::MAX,
            ..Connection::default()
        });
        let at = self.now + self.latency(process, server);
        self.at(at, Event::Arrives { connection });
        self.note(&[1, connection as u64], || {
            format!("p{process} dials s{server}: c{connection}")
        });
        connection
    }

    pub(super) fn arrives(&mut self, connection: usize) {
        let link = self.link_of(connection);
        let it = &mut self.connections[connection];
        if it.is_closed || it.failed.is_some() {
            return;
        }
        if link.holds_requests > 0 || link.holds_replies > 0 {
            // The first segment is sent again until the partition is over.
            let again = self.now + SECOND;
            self.at(again, Event::Arrives { connection });
            return;
        }
        let (process, server) = (it.process, it.server);
        let at = self.now + self.latency(process, server);
        if self.hosts[server].is_up {
            self.connections[connection].is_at_server = true;
            self.at(at, Event::Connected { connection });
        } else {
            let kind = io::ErrorKind::ConnectionRefused;
            self.at(at, Event::ClientHearsEnd { connection, kind });
        }
    }

    pub(super) fn connected(&mut self, connection: usize) -> Option<Waker> {
        let it = &mut self.connections[connection];
        it.is_connected = true;
        it.reader.take()
    }

    /// The client writes.
    pub(super) fn client_sends(&mut self, connection: usize, bytes: &[u8]) {
        let it = &mut self.connections[connection];
        let is_renamed = self.hosts[it.server].postgres.is_some();
        let named = is_renamed.then(|| renamed(bytes, &mut it.statements));
        let bytes = named.as_deref().unwrap_or(bytes);
        self.note(&[2, connection as u64, hash(bytes)], || {
            format!("c{connection} > {}", readable(bytes))
        });
        // A segment may end anywhere: commands of other clients come between its halves.
        let at = if bytes.len() > 60 && self.rng.one_in(8) {
            self.rng.between(1, bytes.len() as u64 - 1) as usize
        } else {
            bytes.len()
        };
        for part in [&bytes[..at], &bytes[at..]] {
            if !part.is_empty() {
                self.send_request(connection, part.to_vec());
            }
        }
    }

    fn send_request(&mut self, connection: usize, bytes: Bytes) {
        let link = self.link_of(connection);
        let it = &mut self.connections[connection];
        let requests = &mut it.requests;
        if link.holds_requests > 0 || requests.frozen > 0 || !requests.held.is_empty() {
            let is_first = requests.held.is_empty();
            requests.held.push_back(bytes);
            if is_first {
                let at = self.now + UNACKNOWLEDGED;
                self.at(
                    at,
                    Event::GivesUp {
                        connection,
                        on_replies: false,
                    },
                );
            }
            return;
        }
        let arrival = self.arrival(connection, Way::Requests);
        self.at(arrival, Event::ToServer { connection, bytes });
    }

    /// The server writes.
    pub(super) fn server_sends(&mut self, connection: usize, bytes: Bytes) {
        if bytes.is_empty() || !self.connections[connection].is_at_server {
            return;
        }
        self.note(&[3, connection as u64, hash(&bytes)], || {
            format!("c{connection} < {}", readable(&bytes))
        });
        let link = self.link_of(connection);
        let replies = &mut self.connections[connection].replies;
        if link.holds_replies > 0 || replies.frozen > 0 || !replies.held.is_empty() {
            let is_first = replies.held.is_empty();
            replies.held.push_back(bytes);
            if is_first {
                // The client's keepalive finds it out.
                let at = self.now + UNACKNOWLEDGED + SECOND;
                self.at(
                    at,
                    Event::GivesUp {
                        connection,
                        on_replies: true,
                    },
                );
            }
            return;
        }
        let arrival = self.arrival(connection, Way::Replies);
        self.at(arrival, Event::ToClient { connection, bytes });
    }

    /// When the next segment arrives: behind all before it.
    fn arrival(&mut self, connection: usize, way: Way) -> u64 {
        let it = &self.connections[connection];
        let time = self.now + self.latency(it.process, it.server);
        let direction = self.direction(connection, way);
        direction.last = time.max(direction.last + 1);
        direction.last
    }

    fn direction(&mut self, connection: usize, way: Way) -> &mut Direction {
        let it = &mut self.connections[connection];
        match way {
            Way::Requests => &mut it.requests,
            Way::Replies => &mut it.replies,
        }
    }

    pub(super) fn server_receives(&mut self, connection: usize, bytes: Bytes) {
        let it = &self.connections[connection];
        let server = it.server;
        if !it.is_at_server || self.now > it.lost_after {
            return;
        }
        let host = &mut self.hosts[server];
        if host.is_stopped() {
            host.unread.push((connection, bytes));
        } else {
            self.serve(connection, &bytes);
        }
    }

    pub(super) fn client_receives(&mut self, connection: usize, bytes: &[u8]) -> Option<Waker> {
        let it = &mut self.connections[connection];
        if it.is_closed || it.failed.is_some() || self.processes[it.process].dead {
            return None;
        }
        it.received.extend(bytes);
        it.reader.take()
    }

    /// The client closes its side. All that it has sent arrives before.
    pub(super) fn client_closes(&mut self, connection: usize) {
        let link = self.link_of(connection);
        let it = &mut self.connections[connection];
        if std::mem::replace(&mut it.is_closed, true) {
            return;
        }
        let requests = &mut it.requests;
        if link.holds_requests > 0 || requests.frozen > 0 || !requests.held.is_empty() {
            requests.ends = true;
            return;
        }
        let arrival = self.arrival(connection, Way::Requests);
        self.at(arrival, Event::ServerHearsEnd { connection });
    }

    pub(super) fn server_hears_end(&mut self, connection: usize) {
        let it = &mut self.connections[connection];
        if std::mem::replace(&mut it.is_at_server, false) {
            it.commands.clear();
            let server = it.server;
            self.hosts[server].server.closed(connection);
            self.with_postgres(server, |postgres, at| postgres.closed(at, connection));
        }
    }

    pub(super) fn client_hears_end(
        &mut self,
        connection: usize,
        kind: io::ErrorKind,
    ) -> Option<Waker> {
        let it = &mut self.connections[connection];
        it.failed.get_or_insert(kind);
        it.reader.take()
    }

    pub(super) fn gives_up(&mut self, connection: usize, on_replies: bool) -> Option<Waker> {
        let it = &mut self.connections[connection];
        let held = if on_replies {
            &it.replies.held
        } else {
            &it.requests.held
        };
        if held.is_empty() || it.failed.is_some() {
            return None;
        }
        it.failed = Some(io::ErrorKind::TimedOut);
        it.reader.take()
    }

    /// Breaks a connection. Requests on their way arrive or do not; answers are lost.
    pub(super) fn cut(&mut self, connection: usize) {
        let soon = self.now + self.rng.below(2 * MILLI);
        let now = self.now;
        let it = &mut self.connections[connection];
        it.lost_after = it.lost_after.min(soon);
        it.requests.held.clear();
        it.replies.held.clear();
        let kind = io::ErrorKind::ConnectionReset;
        self.at(now, Event::ClientHearsEnd { connection, kind });
        self.at(soon, Event::ServerHearsEnd { connection });
    }

    /// The server ends a connection: the client hears it behind all replies.
    pub(super) fn server_ends(&mut self, connection: usize) {
        if !self.connections[connection].is_at_server {
            return;
        }
        self.server_hears_end(connection);
        let at = self.arrival(connection, Way::Replies);
        let kind = io::ErrorKind::ConnectionReset;
        self.at(at, Event::ClientHearsEnd { connection, kind });
    }

    pub(super) fn connections_between(&self, process: usize, server: usize) -> Vec<usize> {
        let all = self.connections.iter().enumerate();
        all.filter(|(_, it)| (it.process, it.server) == (process, server))
            .map(|(connection, _)| connection)
            .collect()
    }

    pub(super) fn connections_of(&self, process: usize) -> Vec<usize> {
        let all = self.connections.iter().enumerate();
        all.filter(|(_, it)| it.process == process)
            .map(|(connection, _)| connection)
            .collect()
    }

    pub(super) fn connections_to(&self, server: usize) -> Vec<usize> {
        let all = self.connections.iter().enumerate();
        all.filter(|(_, it)| it.server == server && it.is_at_server)
            .map(|(connection, _)| connection)
            .collect()
    }

    pub(super) fn freeze(&mut self, connection: usize, ways: Ways, frozen: bool) {
        for way in ways.each() {
            let it = self.direction(connection, way);
            it.frozen = if frozen {
                it.frozen + 1
            } else {
                it.frozen.saturating_sub(1)
            };
        }
    }

    /// Sends what was held, unless another fault holds it.
    pub(super) fn release_held(&mut self, connection: usize) {
        let link = self.link_of(connection);
        for (way, held) in [
            (Way::Requests, link.holds_requests),
            (Way::Replies, link.holds_replies),
        ] {
            if held > 0 || self.direction(connection, way).frozen > 0 {
                continue;
            }
            let mut at = self.now + self.rng.below(RETRANSMISSION);
            for bytes in std::mem::take(&mut self.direction(connection, way).held) {
                at += self.rng.below(MILLI);
                let direction = self.direction(connection, way);
                at = at.max(direction.last + 1);
                direction.last = at;
                self.at(
                    at,
                    match way {
                        Way::Requests => Event::ToServer { connection, bytes },
                        Way::Replies => Event::ToClient { connection, bytes },
                    },
                );
            }
            if way == Way::Requests && std::mem::take(&mut self.direction(connection, way).ends) {
                let at = at.max(self.direction(connection, way).last + 1);
                self.at(at, Event::ServerHearsEnd { connection });
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Requests,
    Replies,
}

/// The directions that a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    Requests,
    Replies,
    Both,
}

impl Ways {
    pub(super) fn requests(self) -> bool {
        self != Ways::Replies
    }

    pub(super) fn replies(self) -> bool {
        self != Ways::Requests
    }

    fn each(self) -> impl Iterator<Item = Way> {
        let requests = self.requests().then_some(Way::Requests);
        requests
            .into_iter()
            .chain(self.replies().then_some(Way::Replies))
    }
}
