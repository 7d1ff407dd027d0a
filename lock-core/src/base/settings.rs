//! The settings of a manager.

use std::time::Duration;

use super::clock::Clock;
use super::options::Wait;

/// The settings of a manager, without its store.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) clock: Clock,
    pub(crate) operation_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) defaults: (Duration, Wait),
    pub(crate) max_ttl: Option<Duration>,
    /// Treats the nodes of a quorum as new if all of them are without data.
    pub(crate) assume_fresh: bool,
}
