//! Records: what a layer with replay keeps of the answer to a request, and as which bytes.
//!
//! The record is the value of the lock's key. lock-core stores its bytes behind the fencing token of the
//! lock, and does not look into them.

mod codec;
mod cursor;
mod fingerprint;
mod headers;
#[cfg(feature = "once")]
mod in_database;
mod replay;
mod seal;
#[cfg(test)]
mod tests;

#[cfg(test)]
use codec::Unreadable;
pub(crate) use codec::{Draft, Record, Sealing};
pub(crate) use fingerprint::{Fingerprinted, digest_of_head};
pub(crate) use replay::ReplayRules;
pub use replay::{Fingerprint, Replay};
pub use seal::Seal;
