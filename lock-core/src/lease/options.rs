//! The terms of a lease: what its owner asked for.

use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::options::Interop;

/// What the owner asked for. Small: a process may hold very many leases.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(PartialEq, Eq, Hash))]
pub(crate) struct LeaseOptions {
    pub(super) ttl_millis: u32,
    pub(super) renew: bool,
    interop: bool,
    /// `Moment::FAR` from the start of time: none.
    pub(super) max_hold: Moment,
}

impl LeaseOptions {
    /// `ttl` is a checked one: whole milliseconds, at most a day.
    pub(crate) fn new(ttl: Duration, renew: bool, max_hold: Option<Duration>) -> Self {
        Self {
            ttl_millis: u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX),
            renew,
            interop: false,
            max_hold: max_hold.map_or(Moment::FAR, |longest| Moment(0) + longest),
        }
    }

    pub(crate) fn interop(self, interop: Interop) -> Self {
        Self {
            interop: interop == Interop::On,
            ..self
        }
    }

    /// Whether the key is left free at times, for clients of other libraries.
    pub(crate) fn leaves_gaps(&self) -> bool {
        self.interop
    }

    pub(super) fn ttl(&self) -> Duration {
        Duration::from_millis(u64::from(self.ttl_millis))
    }

    /// How long a body may run under these terms.
    pub(crate) fn max_hold(&self) -> Duration {
        self.max_hold.since(Moment(0))
    }

    pub(crate) fn renews(&self) -> bool {
        self.renew
    }
}
