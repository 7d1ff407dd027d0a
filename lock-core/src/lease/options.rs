//! The options of a lease, which its owner chose.

use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::options::{Interop, Watch};

/// The owner's options, kept small because a process may hold many leases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseOptions {
    pub(super) ttl_millis: u32,
    pub(super) renew: bool,
    interop: bool,
    /// Set if the keeper renews the lease right after its grant, so that the store watches its key.
    pub(super) watch: bool,
    /// The longest hold, stored as a moment after zero. `Moment::FAR` means no limit.
    pub(super) max_hold: Moment,
}

impl LeaseOptions {
    /// Builds the options. `ttl` has been checked: it is whole milliseconds, and at most a day.
    pub(crate) fn new(ttl: Duration, renew: bool, max_hold: Option<Duration>) -> Self {
        Self {
            ttl_millis: u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX),
            renew,
            interop: false,
            watch: false,
            max_hold: max_hold.map_or(Moment::FAR, |longest| Moment(0) + longest),
        }
    }

    pub(crate) fn interop(self, interop: Interop) -> Self {
        Self {
            interop: interop == Interop::On,
            ..self
        }
    }

    pub(crate) fn watch(self, watch: Watch) -> Self {
        Self {
            watch: watch == Watch::AtOnce,
            ..self
        }
    }

    /// Returns the options of a lease while the other keys of its lock are still collected.
    ///
    /// The lease is renewed, because the collecting may last longer than the ttl.
    pub(crate) fn while_collecting(self) -> Self {
        Self {
            renew: true,
            max_hold: Moment::FAR,
            ..self
        }
    }

    /// Returns whether the key is left free at times, for clients of other libraries.
    pub(crate) fn leaves_gaps(&self) -> bool {
        self.interop
    }

    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_millis(u64::from(self.ttl_millis))
    }

    /// Returns how long a body may run under these options.
    pub(crate) fn max_hold(&self) -> Duration {
        self.max_hold.since(Moment(0))
    }

    pub(crate) fn renews(&self) -> bool {
        self.renew
    }
}
