//! Lanes: the ordered ways to a store.

use crate::base::machine::{self, Id};
use crate::base::token::Address;

/// One ordered way to the store.
///
/// Operations of one lane arrive in the order in which they were sent. No order holds between two lanes.
/// A caller compares lanes and hands them back to the store; only the store knows which connection a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    runtime: Option<Id>,
    channel: u8,
}

impl Lane {
    /// The lane of the keeper's thread, which outlives every runtime of the application.
    pub(crate) const KEEPER: Self = Self {
        runtime: None,
        channel: 0,
    };

    /// The lane of the calling task's runtime; outside of a runtime the keeper's.
    pub(crate) fn of_this_task() -> Self {
        Self {
            runtime: machine::runtime().map(|runtime| runtime.id()),
            channel: 0,
        }
    }

    /// The runtime whose tasks use the lane; `None`: the keeper's.
    pub(crate) fn runtime(self) -> Option<Id> {
        self.runtime
    }
}

#[cfg(feature = "redis")]
impl Lane {
    /// Another lane of the same runtime. A store numbers the channels that it has; 0 is the usual one.
    pub(crate) fn on_channel(self, channel: u8) -> Self {
        Self { channel, ..self }
    }

    pub(crate) fn channel(self) -> u8 {
        self.channel
    }

    /// Returns whether the calling task may make the lane's connection.
    pub(crate) fn is_here(self) -> bool {
        self.runtime.is_none() || self.runtime == Self::of_this_task().runtime
    }
}

/// The way of one acquire, and of the push that answers a waiter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireRoute {
    pub(crate) lane: Lane,
    /// Where pushes for the waiter arrive. The token of the acquire begins with it.
    pub(crate) address: Address,
}

/// The way of a release that its caller does not wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReleaseRoute {
    pub(crate) lane: Lane,
    /// Whether the lane sends requests together at the moment: the release is then sent at once, to go along.
    pub(crate) batched: bool,
}
