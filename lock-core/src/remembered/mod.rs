//! The results of functions with `#[idempotent]`: which are kept, as which bytes, and for which arguments.
//!
//! This folder does no I/O. `api/remembered` leaves the bytes in the key of a lock.

mod bytes;
mod fingerprint;
mod memory;
mod result;

pub use fingerprint::{Fingerprint, FingerprintBuilder, FingerprintValue};
pub use memory::Memory;
pub use result::{Remember, RememberErrors, is_remembered};
