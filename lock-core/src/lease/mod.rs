//! Decisions about a lease. Everything here is pure: the time is an argument, and nothing is sent.

pub(crate) mod backoff;
pub(crate) mod cohort;
pub(crate) mod deadline;
mod options;
mod state;

pub(crate) use self::options::Terms;
pub(crate) use self::state::{Action, Lease, Loss, Phase, Renewal};
