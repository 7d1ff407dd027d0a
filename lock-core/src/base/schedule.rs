//! Schedules: when the ticks of a repeated job begin. Pure.

use std::time::{Duration, SystemTime};

use super::clock::ServerTime;
use super::error::Error;

/// Says when the ticks of a job begin.
///
/// Each tick lasts until the next one begins. A [`Duration`] is the schedule whose ticks begin at its multiples, counted
/// from 1 January 1970, UTC. [`Interval`] moves them. `Cron` (feature `cron`) follows a calendar, and so can another
/// implementation of this trait.
///
/// # Examples
///
/// On every full hour of working days:
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use lock_core::Schedule;
///
/// struct Weekdays;
///
/// impl Schedule for Weekdays {
///     fn next(&self, time: SystemTime) -> SystemTime {
///         let hours = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / 3_600;
///         // 1 January 1970 was a Thursday.
///         let works = |hour: &u64| !matches!((hour / 24 + 4) % 7, 0 | 6);
///         let hour = (hours + 1..).find(works).unwrap_or(u64::MAX);
///         SystemTime::UNIX_EPOCH + Duration::from_secs(hour * 3_600)
///     }
/// }
/// ```
pub trait Schedule: Send + Sync {
    /// Returns the begin of the first tick after `time`.
    ///
    /// The result depends on `time` only, so that all processes count the same ticks. It is later than `time`, or the
    /// run ends with [`Invalid`](crate::ErrorKind::Invalid).
    fn next(&self, time: SystemTime) -> SystemTime;
}

impl Schedule for Duration {
    fn next(&self, time: SystemTime) -> SystemTime {
        Interval::new(*self).next(time)
    }
}

impl<S: Schedule + ?Sized> Schedule for Box<S> {
    fn next(&self, time: SystemTime) -> SystemTime {
        (**self).next(time)
    }
}

/// Ticks of one length, which begin at any time of the hour or of the day.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use lock_core::Interval;
///
/// // Every night at half past two, UTC.
/// let nightly = Interval::new(Duration::from_secs(24 * 3_600)).starting_at(Duration::from_secs(9_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    length: Duration,
    start: Duration,
}

impl Interval {
    /// Creates ticks that begin at the multiples of `length`, counted from 1 January 1970, UTC.
    #[must_use]
    pub fn new(length: Duration) -> Self {
        Self {
            length,
            start: Duration::ZERO,
        }
    }

    /// Lets the ticks begin so much later.
    #[must_use]
    pub fn starting_at(mut self, start: Duration) -> Self {
        self.start = start;
        self
    }
}

impl Schedule for Interval {
    fn next(&self, time: SystemTime) -> SystemTime {
        let length = self.length.as_nanos();
        if length == 0 {
            return time;
        }
        let now = since_epoch(time).as_nanos();
        let start = self.start.as_nanos() % length;
        // One length more keeps the difference above zero.
        let next = ((now + length - start) / length) * length + start;
        let seconds = u64::try_from(next / NANOS).unwrap_or(u64::MAX);
        let nanos = u32::try_from(next % NANOS).unwrap_or(0);
        let next = SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos));
        next.unwrap_or(SystemTime::UNIX_EPOCH + LATEST)
    }
}

/// Nanoseconds in a second.
const NANOS: u128 = 1_000_000_000;
/// The latest begin of a tick, in the year 2255. A later one counts as this one.
pub(super) const LATEST: Duration = Duration::from_micros(9_000_000_000_000_000);

/// Returns the begin of the first tick after `time`, in whole microseconds.
///
/// # Errors
///
/// `Invalid` if the schedule names a time that is not later than `time`.
pub(crate) fn next_tick(schedule: &dyn Schedule, time: ServerTime) -> Result<ServerTime, Error> {
    let next = since_epoch(schedule.next(time.into())).min(LATEST);
    // Rounded up, so that no tick begins before its schedule says so.
    let next = ServerTime(u64::try_from(next.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX));
    if next > time {
        return Ok(next);
    }
    Err(Error::invalid(
        "the schedule's next tick does not begin later than the time for which it was asked; an interval must be \
         longer than zero",
    ))
}

pub(super) fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

impl From<ServerTime> for SystemTime {
    fn from(time: ServerTime) -> Self {
        SystemTime::UNIX_EPOCH + Duration::from_micros(time.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> ServerTime {
        ServerTime(seconds * 1_000_000)
    }

    #[test]
    fn the_ticks_of_an_interval_begin_at_its_multiples() {
        let minute = Duration::from_secs(60);
        let next = |time| next_tick(&minute, time).expect("later");
        assert_eq!(next(seconds(0)), seconds(60));
        assert_eq!(next(seconds(59)), seconds(60));
        assert_eq!(next(ServerTime(59_999_999)), seconds(60));
        assert_eq!(
            next(seconds(60)),
            seconds(120),
            "a tick begins at its begin"
        );
    }

    #[test]
    fn an_interval_that_starts_later_has_the_same_length() {
        let daily = Interval::new(Duration::from_secs(86_400));
        let nightly = daily.starting_at(Duration::from_secs(9_000));
        let next = |time| next_tick(&nightly, time).expect("later");
        assert_eq!(next(seconds(0)), seconds(9_000));
        assert_eq!(next(seconds(8_999)), seconds(9_000));
        assert_eq!(next(seconds(9_000)), seconds(95_400));
        let beyond = daily.starting_at(Duration::from_secs(86_400 + 9_000));
        assert_eq!(
            next_tick(&beyond, seconds(0)).expect("later"),
            seconds(9_000)
        );
    }

    #[test]
    fn a_tick_never_begins_before_its_schedule_says_so() {
        let third = Duration::from_nanos(1_500);
        assert_eq!(
            next_tick(&third, ServerTime(0)).expect("later"),
            ServerTime(2)
        );
    }

    #[test]
    fn a_schedule_that_stands_still_is_invalid() {
        struct Always(SystemTime);
        impl Schedule for Always {
            fn next(&self, _: SystemTime) -> SystemTime {
                self.0
            }
        }
        let still = Always(seconds(7).into());
        assert!(next_tick(&still, seconds(6)).is_ok());
        for time in [7, 8] {
            let error = next_tick(&still, seconds(time)).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        }
        assert!(next_tick(&Duration::ZERO, seconds(1)).is_err());
    }

    #[test]
    fn a_tick_beyond_all_clocks_is_the_latest_one() {
        let never = next_tick(&Duration::MAX, seconds(1)).expect("later");
        assert_eq!(u128::from(never.0), LATEST.as_micros());
    }
}
