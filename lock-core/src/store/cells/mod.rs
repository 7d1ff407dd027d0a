//! Locks over cells: a store that keeps bytes for each key, and changes them only where it has seen the write before.
//!
//! Each operation is a step of the [`protocol`](crate::protocol), as on the embedded store. This process runs the step on
//! what it believes the store to have, and asks the store to swap the document for the one behind the step. If another
//! process was faster, the store answers with the document that it has, and the step runs again. So a free lock costs one
//! round trip, and no code runs in the store.
//!
//! A write names the write before it by its number and its time, and no two writes have both. So a copy of a write that
//! arrives late changes nothing, unless it is the first one of a key: a store refuses that after a while.

#[cfg(lock_sim)]
pub mod by_words;
mod card;
mod codec;
mod driver;
mod guesses;
pub(crate) mod message;
mod operator;
mod several;
mod store;
#[cfg(test)]
mod test_cells;
#[cfg(test)]
mod tests;
mod work;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::codec::PASSES;
pub(crate) use self::driver::CellStore;
use super::{BoxFuture, Events, Failure, Pattern, ScanCursor, Scanned, Told};
use crate::audit::Finding;
use crate::base::clock::ServerTime;
use crate::base::token::Address;
use crate::protocol::Push;

/// A place that keeps bytes for keys.
///
/// The result of a dropped future is unknown.
pub(crate) trait Cells: Debug + Send + Sync {
    /// Connects, receives messages and reconnects, for as long as the manager lives.
    fn background(&self, events: Events) -> BoxFuture<'_, ()>;

    /// Resolves when the cells can be used, or says why they cannot.
    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>>;

    /// Asks the store one question now: whether it answers, and lets this client write.
    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>>;

    /// Lists problems of the store's settings.
    fn audit(&self) -> BoxFuture<'_, Result<Vec<Finding>, Failure>>;

    /// Swaps the bytes of a key, and sends the messages behind it; of several keys, all of them as one write, or none.
    fn swap(&self, swaps: Vec<Swap>) -> BoxFuture<'_, Result<Swapped, Failure>>;

    /// Waits until the messages of all swaps so far are sent, as far as they can be.
    fn told(&self) -> BoxFuture<'_, ()>;

    /// Reads keys, and the clock. The clock showed no more than that at the moment of the reading.
    fn read(&self, keys: &[Arc<str>]) -> BoxFuture<'_, Result<Read, Failure>>;

    /// Lists some keys behind `after` in an order of the store's own.
    fn list(
        &self,
        pattern: Pattern,
        after: Option<Arc<str>>,
    ) -> BoxFuture<'_, Result<Scanned, Failure>>;

    fn send(&self, to: Address, message: String) -> BoxFuture<'_, Result<Told, Failure>>;

    /// Returns a time that the clock of the store has surely reached, and has reached no long time ago; 0 if none is known.
    fn clock(&self) -> ServerTime;

    /// Returns whether messages to this manager arrive at the moment.
    fn listens(&self) -> bool;

    /// Returns how late a copy of the first write of a key may arrive.
    fn late_duplicate(&self) -> Duration;

    /// Returns SQL that finds a row while an owner has a key, if the cells are rows.
    fn check_sql(&self) -> Option<&'static str>;
}

/// A page of keys, and the last one that was looked at; `None`: the list has ended.
pub(crate) fn page(keys: Vec<Arc<str>>, last: Option<Arc<str>>) -> Scanned {
    let next = last.map(|last| ScanCursor {
        after: Some(last),
        ..ScanCursor::default()
    });
    Scanned { keys, next }
}

/// One change of a key.
pub(crate) struct Swap {
    pub(crate) key: Arc<str>,
    /// The write before. Number 0: the key is absent, or what it has is over.
    pub(crate) seen: Written,
    pub(crate) bytes: Arc<[u8]>,
    /// The time from which on the document says nothing: the later of a time of the store's clock, and one that is counted
    /// from this write, both in microseconds. 0: no such time.
    pub(crate) ends: u64,
    pub(crate) lasts: u64,
    /// The time that the writer believes it is. If the clock of the store shows less, because it was set back, a write that
    /// follows another one is not done: a lease that the writer takes for over may not be.
    pub(crate) now: ServerTime,
    /// The time from which on a lease, a cooldown or a queue is over that the writer has seen. A write that arrives later and
    /// follows another one is not done: it would make the lease anew.
    pub(crate) until: ServerTime,
    /// The fencing token of the one owner.
    pub(crate) fence: OwnerFence,
    /// Whether an owner loses the key by this write. The write then waits until no transaction checks the key.
    pub(crate) ends_a_hold: bool,
    /// Whether a crash of the store may lose the write. It then gives the key to no waiter.
    pub(crate) may_be_lost: bool,
    /// All of the receivers must listen, or nothing is written.
    pub(crate) pushes: Vec<Push>,
}

/// The fencing token of the one owner of a key, for the application's SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerFence {
    /// There is no owner, or there are shares.
    None,
    /// That of this write.
    New,
    Kept(u64),
}

/// A write that was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The numbers of one key rise. A crash of the store can lose a write that [may be lost](Swap::may_be_lost), and the store can
    /// give that number to a later write. No crash loses a write that grants a key, so no other write has its number.
    pub(crate) revision: u64,
    pub(crate) at: ServerTime,
}

/// The document of a key in the store, with its last write.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) written: Written,
    pub(crate) bytes: Vec<u8>,
}

/// What was read of some keys, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) stored: Vec<Option<Stored>>,
    pub(crate) now: ServerTime,
}

#[derive(Debug)]
pub(crate) enum Swapped {
    Done(Written),
    /// Nothing was done. With what the store has, of several keys for any of them. If that is what was to be swapped, something of
    /// it is over, a write of another process is under way, or a transaction of the application checks the key.
    Changed(Option<Stored>, ServerTime),
    /// Nothing was sent, because another operation of this process has written this meanwhile, or has read it.
    Outrun(Stored),
    /// Nothing was done, because these receivers do not listen.
    Deaf(Vec<Address>),
    /// Nothing was done, because the store had to choose between two writes.
    Again,
}
