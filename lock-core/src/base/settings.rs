//! The settings of a manager.

use std::time::Duration;

use super::clock::Clock;
#[cfg(any(feature = "redis", feature = "postgres"))]
use super::credentials::Provider;
use super::identity::Naming;
use super::options::{MAX_TTL, Wait};

/// The settings of a manager, without its store.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) namespace: String,
    pub(crate) clock: Clock,
    /// The clock of an embedded store.
    pub(crate) store_clock: Clock,
    /// Gives the user and the password of the servers, in place of those of the URL.
    #[cfg(any(feature = "redis", feature = "postgres"))]
    pub(crate) credentials: Option<Provider>,
    pub(crate) operation_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) defaults: (Duration, Wait),
    /// The longest ttl and cooldown. A node of a quorum without data does not vote for that long.
    pub(crate) max_ttl: Duration,
    /// Treats the nodes of a quorum as new if all of them are without data.
    pub(crate) assume_fresh: bool,
    /// The identity that the manager leaves in its store.
    pub(crate) naming: Naming,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "lockkit:".to_owned(),
            clock: Clock::default(),
            store_clock: Clock::default(),
            #[cfg(any(feature = "redis", feature = "postgres"))]
            credentials: None,
            operation_timeout: Duration::from_millis(500),
            connect_timeout: Duration::from_secs(5),
            defaults: (Duration::from_secs(30), Wait::None),
            max_ttl: MAX_TTL,
            assume_fresh: false,
            naming: Naming::Named(None),
        }
    }
}
