//! The clock from which all deadlines are read.
//!
//! A lease keeps running while the machine sleeps, and it must not change when the wall clock is
//! set. So time is `CLOCK_BOOTTIME` on Linux and Android, `CLOCK_MONOTONIC` on other Unix systems
//! (on macOS that clock counts sleep too), and `std`'s monotonic clock on Windows.

use std::ops::Add;
use std::time::Duration;

use super::machine;
#[cfg(feature = "test-util")]
use super::manual_clock::ManualClock;

/// A point in time on the server's clock, in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct ServerTime(pub(crate) u64);

/// A point in time on the manager's clock, in nanoseconds since an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    pub(crate) const FAR: Moment = Moment(u64::MAX);

    /// Returns the time from `earlier` to this moment, or zero if `earlier` is later.
    pub(crate) fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, span: Duration) -> Moment {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Moment(self.0.saturating_add(nanos))
    }
}

/// The clock that a manager reads.
#[derive(Clone, Debug, Default)]
pub(crate) enum Clock {
    #[default]
    System,
    #[cfg(feature = "test-util")]
    Manual(ManualClock),
}

impl Clock {
    pub(crate) fn now(&self) -> Moment {
        match self {
            Clock::System => Moment(machine::now()),
            #[cfg(feature = "test-util")]
            Clock::Manual(clock) => clock.now(),
        }
    }

    /// Returns whether both clocks always show the same time.
    pub(crate) fn is(&self, other: &Clock) -> bool {
        match (self, other) {
            (Clock::System, Clock::System) => true,
            #[cfg(feature = "test-util")]
            (Clock::Manual(one), Clock::Manual(other)) => one.is(other),
            #[cfg(feature = "test-util")]
            _ => false,
        }
    }

    /// Returns Unix time in microseconds, from which the embedded store counts fencing tokens and ticks.
    pub(crate) fn unix_micros(&self) -> u64 {
        #[cfg(feature = "test-util")]
        if let Clock::Manual(clock) = self {
            return clock.unix_micros();
        }
        machine::unix_micros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_moves_forward() {
        let clock = Clock::default();
        let first = clock.now();
        let second = clock.now();
        assert!(second >= first);
    }

    #[test]
    fn adding_the_longest_duration_saturates() {
        assert_eq!(Moment(5) + Duration::MAX, Moment::FAR);
    }

    #[test]
    fn since_a_later_moment_is_zero() {
        assert_eq!(Moment(5).since(Moment(9)), Duration::ZERO);
    }
}
