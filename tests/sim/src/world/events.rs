//! What happens at a time: timers, segments that arrive, faults that begin and end.

use std::io;
use std::task::Waker;

use super::State;
use super::cluster::News;
use super::resharding::{Move, Step};
use crate::server::Bytes;

pub(super) enum Event {
    Timer(Waker),
    /// A segment arrives at the server.
    ToServer {
        connection: usize,
        bytes: Bytes,
    },
    /// A segment arrives at the client.
    ToClient {
        connection: usize,
        bytes: Bytes,
    },
    /// The server hears that the client has closed its side.
    ServerHearsEnd {
        connection: usize,
    },
    /// The client hears that the connection has ended.
    ClientHearsEnd {
        connection: usize,
        kind: io::ErrorKind,
    },
    /// The server's machine takes a connection, or refuses it.
    Arrives {
        connection: usize,
    },
    /// The client has the answer to its attempt to connect.
    Connected {
        connection: usize,
    },
    /// The kernel gives a connection up whose bytes nobody acknowledges.
    GivesUp {
        connection: usize,
        on_replies: bool,
    },
    /// The time of a `WAIT` is over.
    WaitEnds {
        server: usize,
    },
    /// A write arrives at a replica.
    Replicate {
        replica: usize,
    },
    /// A server hears of a failover.
    Obeys {
        server: usize,
    },
    /// A stranger deletes a key.
    Strikes {
        server: usize,
        key: Bytes,
    },
    /// A stranger changes a key as this fault says.
    Touches(usize),
    /// A node of a cluster hears something from another one.
    Heard {
        node: usize,
        news: News,
    },
    /// The next step of a slot that moves.
    Move(Move, Step),
    /// The replica of a master of a cluster takes its place.
    FailOver {
        master: usize,
    },
    FaultBegins(usize),
    FaultEnds(usize),
    /// A process that was stopped amid a release runs again.
    GoesOn {
        process: usize,
    },
}

impl State {
    /// Plans an event. Returns its number.
    pub(super) fn at(&mut self, time: u64, event: Event) -> u64 {
        let number = self.number();
        self.events.insert((time, number), event);
        number
    }

    pub(super) fn next_event(&self) -> Option<u64> {
        self.events.first_key_value().map(|it| it.0.0)
    }

    pub(super) fn set_timer(&mut self, time: u64, waker: Waker) -> u64 {
        let number = self.at(time, Event::Timer(waker));
        self.timers.insert(number, time);
        number
    }

    /// Takes a timer out. The caller drops it when the state is free.
    pub(super) fn clear_timer(&mut self, timer: u64) -> Option<Event> {
        let time = self.timers.remove(&timer)?;
        self.events.remove(&(time, timer))
    }

    /// Does what is due. Returns the tasks to wake.
    pub(super) fn fire_due(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= self.now
        {
            let ((_, number), event) = entry.remove_entry();
            self.timers.remove(&number);
            wakers.extend(self.fire(event));
        }
        wakers
    }

    fn fire(&mut self, event: Event) -> Option<Waker> {
        match event {
            Event::Timer(waker) => return Some(waker),
            Event::ToServer { connection, bytes } => self.server_receives(connection, bytes),
            Event::ToClient { connection, bytes } => {
                return self.client_receives(connection, &bytes);
            }
            Event::ServerHearsEnd { connection } => self.server_hears_end(connection),
            Event::ClientHearsEnd { connection, kind } => {
                return self.client_hears_end(connection, kind);
            }
            Event::Arrives { connection } => self.arrives(connection),
            Event::Connected { connection } => return self.connected(connection),
            Event::GivesUp {
                connection,
                on_replies,
            } => return self.gives_up(connection, on_replies),
            Event::WaitEnds { server } => self.wait_ends(server),
            Event::Replicate { replica } => self.replicate(replica),
            Event::Obeys { server } => self.obey(server),
            Event::Strikes { server, key } => self.stranger_deletes(server, &key),
            Event::Touches(fault) => self.touch(fault),
            Event::Heard { node, news } => self.hears(node, news),
            Event::Move(it, step) => self.move_on(it, step),
            Event::FailOver { master } => self.fail_over(master),
            Event::FaultBegins(fault) => self.fault_begins(fault),
            Event::FaultEnds(fault) => self.fault_ends(fault),
            Event::GoesOn { process } => self.resume(process),
        }
        None
    }
}
