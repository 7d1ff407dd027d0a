//! The protocol of a lock on one server, as a pure function.
//!
//! A [`Document`] is the state of a key: its owners and its queue. [`step`] applies one operation to it. The function has no
//! clock and no I/O. Its caller puts the time and the listening processes into [`Around`], and sends the pushes.
//!
//! The embedded store, the store on PostgreSQL and the model of tickets run it. The Lua scripts do the same on a Redis server,
//! where a script is one round trip. `tests/sim` runs random operations on both and compares them, so a change of the
//! protocol is a change of both.
//!
//! The votes of a quorum are not a part of it.

mod acquire;
mod around;
mod document;
mod end;
mod lengthen;
mod operation;
mod order;
mod patience;
mod queue;
#[cfg(any(test, lock_sim))]
pub mod scripts;
mod serve;
mod several;
mod shares;
#[cfg(test)]
mod spans_tests;
#[cfg(test)]
mod tests;

pub(crate) use self::around::{Around, News, Push};
pub(crate) use self::document::{Closed, Document, Hold, Phase, Waited, Waiter};
pub(crate) use self::end::WORTH_TELLING;
pub(crate) use self::operation::{Acquire, End, Ended, Force, Operation, Refused, Reply, Way};
pub(crate) use self::several::acquire_all;
#[cfg(feature = "postgres")]
pub(crate) use self::shares::{Place, Shares};

/// A time or a span in milliseconds, as the ends of keys are counted. A key exists in the whole last millisecond.
pub(crate) type Millis = u64;

/// Runs one operation on a key. Several keys at once are in [`acquire_all`].
pub(crate) fn step(
    document: &mut Document,
    operation: &Operation,
    around: &mut Around<'_>,
) -> Reply {
    document.settle(around.now_ms());
    match operation {
        Operation::Acquire(ask) => document.acquire(ask, around),
        Operation::Extend { token, ttl } => document.extend(*token, *ttl, around),
        Operation::Swap {
            from,
            to,
            ttl,
            fence,
        } => document.swap(*from, *to, *ttl, *fence, around),
        Operation::End(end) => document.end(end, around),
        Operation::Forget => document.forget(),
        Operation::Force(force) => document.force(force, around),
    }
}
