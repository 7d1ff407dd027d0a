//! Decisions about a lease. Everything here is pure: the time is an argument, and no code sends
//! anything.

pub(crate) mod backoff;
pub(crate) mod cohort;
pub(crate) mod deadline;
mod loss;
mod options;
mod refusal;
mod state;
pub(crate) mod yield_turn;

pub(crate) use self::loss::Loss;
pub(crate) use self::options::LeaseOptions;
pub(crate) use self::refusal::{Grant, Refusal};
pub(crate) use self::state::{Action, Extended, Lease, Phase};
