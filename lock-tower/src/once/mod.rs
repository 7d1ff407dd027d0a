//! Exactly once: the transaction in which the effect of a handler and its answer are committed.
//!
//! [`Replay::in_database`](crate::Replay::in_database) gives a layer its database. This module has the handler's side,
//! [`Once`] and [`OnceTx`], and the layer's side, which does not know the type of the database. The steps of a request are in
//! `replay`.
//!
//! # Why the layer owns the transaction
//!
//! The layer commits when it has read the whole answer, because the record of the answer is in the same commit. So the
//! handler borrows the transaction from a slot, and the drop of its guard puts the transaction back. A handler cannot forget
//! to commit, and cannot commit too early.

mod database;
#[cfg(feature = "axum")]
mod extract;
mod handle;
mod pauses;
mod refusal;
mod run;
mod slot;
mod transaction;

pub(crate) use database::{AnyDatabase, Typed};
pub(crate) use handle::Installed;
pub use handle::Once;
pub(crate) use refusal::Refusal;
pub use refusal::Refused;
pub(crate) use run::{AnyRun, Terms, log_failure};
pub(crate) use slot::AtEnd;
pub use transaction::OnceTx;
