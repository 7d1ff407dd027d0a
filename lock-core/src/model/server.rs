//! The server of the model: the protocol that the embedded store runs, with a manual clock.

use super::fault::ModelFault;
use super::message::Name;
use super::wrong_server;
use crate::base::clock::ServerTime;
use crate::base::token::{Address, Token};
use crate::protocol::{Around, Document, Hold, Operation, Phase, Push, Reply, Waited, step};

/// The value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Value {
    Held(Name),
    /// The key cools down after the lease of this token.
    Cooling(Name),
    /// The owner of this token has left its record.
    Done(Name),
    /// A client of another library.
    ForeignOwner,
}

/// The server with its one key.
#[derive(Clone, Debug, Hash)]
pub(super) struct ModelServer {
    /// The server's clock in microseconds.
    pub(super) micros: u64,
    pub(super) mark: u64,
    pub(super) document: Document,
}

/// What is around the server in a step.
pub(super) struct Surroundings<'a> {
    /// Returns whether a process listens at an address.
    pub(super) listens: &'a dyn Fn(Address) -> bool,
    /// Whether the server refuses all writes now.
    pub(super) refuses_writes: bool,
    pub(super) fault: Option<ModelFault>,
}

impl ModelServer {
    pub(super) fn new(micros: u64) -> Self {
        let mut server = Self {
            micros,
            mark: 0,
            document: Document::default(),
        };
        server.keep_queue();
        server
    }

    pub(super) fn millis(&self) -> u64 {
        self.micros / 1_000
    }

    /// Returns the value of the key, and the milliseconds that it lasts.
    pub(super) fn current(&self) -> Option<(Value, u64)> {
        let left = self.document.left(self.millis())?;
        let value = match &self.document.phase {
            Phase::Free => return None,
            Phase::Held(hold) if hold.token == Token::NOBODY => Value::ForeignOwner,
            Phase::Held(hold) => Value::Held(Name::of(hold.token)),
            Phase::Shared(_) => unreachable!("no client asks for a share"),
            Phase::Closed(closed) if closed.record.is_some() => Value::Done(Name::of(closed.of)),
            Phase::Closed(closed) => Value::Cooling(Name::of(closed.of)),
        };
        Some((value, left))
    }

    /// Returns the waiters in their order, and when they arrived.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Name, u64)> {
        self.document.queue.iter().map(|waiter| {
            let Waited::Since(arrival) = waiter.waited else {
                unreachable!("only shares make the server ask a waiter")
            };
            (Name::of(waiter.token), arrival)
        })
    }

    /// Moves the clock.
    pub(super) fn moves(&mut self, micros: i64) {
        self.micros = self.micros.saturating_add_signed(micros);
        // The key ends to the millisecond, which is the earliest moment at which a server may drop it.
        self.document.settle(self.millis() + 1);
    }

    /// Gives the free key to a client of another library.
    pub(super) fn goes_to_a_stranger(&mut self, ttl: u64) {
        let (token, ends) = (Token::NOBODY, self.millis() + ttl);
        self.document.phase = Phase::Held(Hold { token, ends });
    }

    /// Runs an operation. Returns the reply and the messages.
    pub(super) fn run(
        &mut self,
        operation: &Operation,
        beside: &Surroundings<'_>,
    ) -> (Reply, Vec<Push>) {
        match beside.fault {
            None => self.step(operation, beside),
            Some(fault) => wrong_server::run(self, operation, beside, fault),
        }
    }

    /// Runs an operation without a seeded fault.
    pub(super) fn step(
        &mut self,
        operation: &Operation,
        beside: &Surroundings<'_>,
    ) -> (Reply, Vec<Push>) {
        let mut around = Around {
            now: ServerTime(self.micros),
            mark: self.mark,
            used: 0,
            has_room: !beside.refuses_writes,
            listens: beside.listens,
            pushes: Vec::new(),
        };
        let reply = step(&mut self.document, operation, &mut around);
        self.mark = around.mark;
        self.keep_queue();
        (reply, around.pushes)
    }

    /// Makes the queue last. It ends long after its key, so the model loses it in a step of its own.
    fn keep_queue(&mut self) {
        self.document.queue_ends = u64::MAX;
    }
}
