//! The messages between the processes of the model and its server, and the tokens in them.

use super::server::Value;
use crate::base::token::Token;
use crate::protocol::{Acquire, Operation};

/// A token: the process, and the number of the lease in that process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name {
    pub(super) process: u8,
    pub(super) lease: u8,
}

impl Name {
    pub(super) fn token(self) -> Token {
        let mut bytes = [0; 24];
        // No process has the address 0.
        bytes[0] = self.process + 1;
        bytes[23] = self.lease;
        Token::from_bytes(bytes)
    }

    pub(super) fn of(token: Token) -> Self {
        let bytes = token.bytes();
        Self {
            process: bytes[0] - 1,
            lease: bytes[23],
        }
    }
}

/// A request for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ask {
    pub(super) token: Name,
    pub(super) ttl: u64,
    pub(super) queue: bool,
    /// A token that may be superseded, and its fencing token.
    pub(super) replaces: Option<(Name, Option<u64>)>,
}

impl Ask {
    pub(super) fn operation(self) -> Operation {
        Operation::Acquire(Acquire {
            token: self.token.token(),
            ttl: self.ttl,
            grant: self.ttl.min(2_000),
            waits: self.queue,
            replaces: self.replaces.map(|(replaced, _)| replaced.token()),
            used: self.replaces.and_then(|(_, fence)| fence),
        })
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum AcquireReply {
    Granted(u64),
    /// The value, its milliseconds, the server's time, and whether the waiter is queued.
    Busy(Value, u64, u64, bool),
}

/// A message to a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Push {
    /// The token owns the key, with a fencing token, until an end in milliseconds.
    HandedOver(Name, u64, u64),
    /// The token is next, after so many milliseconds.
    Next(Name, u64),
}
