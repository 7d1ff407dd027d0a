//! Options of a lock request, and their bounds.

use std::time::Duration;

use crate::base::error::Error;

/// Decides how a request behaves while another owner holds the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// The request fails at once with `Busy`.
    #[default]
    None,
    /// The request waits this long in total, in the order of arrival within this process. Zero
    /// means `None`. The wait ends earlier with `Unavailable` if the store [does not
    /// answer](crate::LockRequest::wait).
    For(Duration),
    /// The request waits until it gets the lock or the store [does not
    /// answer](crate::LockRequest::wait).
    Forever,
}

impl Wait {
    /// Replaces a wait of zero by `None`.
    pub(crate) fn normal(self) -> Self {
        match self {
            Wait::For(Duration::ZERO) => Wait::None,
            wait => wait,
        }
    }
}

impl From<Duration> for Wait {
    fn from(span: Duration) -> Self {
        Wait::For(span).normal()
    }
}

/// Decides whether the keeper renews the lease while the lock is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Renew {
    /// The keeper renews the lease until the release.
    ///
    /// It renews every third of the ttl, at least every 10 s.
    #[default]
    Auto,
    /// The keeper never renews the lease, which ends with its ttl.
    Off,
}

#[doc = include_str!("../docs/interop.md")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interop {
    /// Only this kit locks the key. A release hands the lock directly to the first waiter, so the
    /// key is never free in between.
    #[default]
    Off,
    /// Clients of other libraries lock the key too. About once a second the key is left free for 50
    /// ms.
    On,
}

/// Says from when on the store watches the key of a lock, and tells the owner at once of a change.
///
/// See [`LockRequest::watch`](crate::LockRequest::watch).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Watch {
    /// From the first renewal on, which comes after a third of the ttl, at most 10 s. A lock that is released before
    /// costs nothing more.
    #[default]
    AfterRenewal,
    /// From right after the grant, by one more renewal.
    AtOnce,
}

/// Decides what happens to a running body when its lock is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLost {
    /// The body is dropped at its next await, and the caller gets `Lost`.
    #[default]
    Cancel,
    /// The body runs to its end, and the caller gets the body's result. The body can check its
    /// handle. A body that has not begun by then does not begin.
    Ignore,
}

/// Decides what `run`, `run_with` and the attribute do if the caller already holds the lock.
///
/// The caller holds the lock already if it runs under the same key of the same manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reentrancy {
    /// The body enters the outer lock, with the same lease and fencing token. One body runs at a
    /// time.
    #[default]
    Enter,
    /// The call returns `Invalid` at once, because it would wait for itself.
    Refuse,
}

/// Decides whether the caller waits for the release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseMode {
    /// The call returns when the store has answered.
    ///
    /// So the next caller finds the lock free.
    #[default]
    Await,
    /// The call returns at once. The release is sent, and repeated if needed, in the background.
    Background,
}

/// The shortest ttl.
pub(crate) const MIN_TTL: Duration = Duration::from_millis(10);
/// The longest ttl and cooldown.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The durations of a request, as the caller gave them.
#[derive(Clone, Copy)]
pub(crate) struct RequestDurations {
    pub(crate) ttl: Duration,
    pub(crate) cooldown: Duration,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) acquire_timeout: Option<Duration>,
}

impl RequestDurations {
    /// Returns the ttl in whole milliseconds if all durations are within their bounds.
    pub(crate) fn checked(self, max_ttl: Duration) -> Result<Duration, Error> {
        let ttl = checked_ttl(self.ttl, max_ttl)?;
        checked_cooldown(self.cooldown, max_ttl)?;
        if self.max_hold.is_some_and(|longest| longest.is_zero()) {
            return Err(Error::invalid(
                "a max_hold of zero leaves no time for the body",
            ));
        }
        if self.acquire_timeout.is_some_and(|time| time.is_zero()) {
            return Err(Error::invalid(
                "an acquire_timeout of zero leaves no time for an answer",
            ));
        }
        Ok(ttl)
    }
}

/// Returns the ttl in whole milliseconds, rounded up, or an error that names the bound.
pub(crate) fn checked_ttl(ttl: Duration, longest: Duration) -> Result<Duration, Error> {
    within_bounds("ttl", ttl, longest)
}

/// As [`checked_ttl`], for the time within which a ticket is used.
pub(crate) fn checked_pick_up_time(time: Duration, longest: Duration) -> Result<Duration, Error> {
    within_bounds("pick_up_time", time, longest)
}

fn within_bounds(name: &str, span: Duration, longest: Duration) -> Result<Duration, Error> {
    if span < MIN_TTL {
        return Err(Error::invalid(format!(
            "a {name} of {span:?} is too short; the shortest is 10ms"
        )));
    }
    if span > longest {
        return Err(Error::invalid(format!(
            "a {name} of {span:?} is too long; the longest is {}",
            shown(longest)
        )));
    }
    Ok(whole_millis(span))
}

/// Checks that all servers of the manager can keep the cooldown.
///
/// A cooldown beyond a day counts as a day.
pub(crate) fn checked_cooldown(cooldown: Duration, longest: Duration) -> Result<(), Error> {
    if cooldown.min(MAX_TTL) > longest {
        return Err(Error::invalid(format!(
            "a cooldown of {cooldown:?} is longer than the manager's max_ttl of {}",
            shown(longest)
        )));
    }
    Ok(())
}

fn shown(longest: Duration) -> String {
    if longest == MAX_TTL {
        "24h".to_owned()
    } else {
        format!("{longest:?} (`max_ttl`)")
    }
}

/// Returns a cooldown in whole milliseconds, rounded up and at most a day.
pub(crate) fn cooldown_millis(cooldown: Duration) -> u32 {
    let millis = whole_millis(cooldown.min(MAX_TTL)).as_millis();
    u32::try_from(millis).unwrap_or(u32::MAX)
}

fn whole_millis(span: Duration) -> Duration {
    let millis = span.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_outside_its_bounds_names_the_bound() {
        for (ttl, bound) in [
            (Duration::ZERO, "10ms"),
            (Duration::from_micros(900), "10ms"),
            (Duration::from_secs(3 * 365 * 86_400), "24h"),
            (Duration::MAX, "24h"),
        ] {
            let error = checked_ttl(ttl, MAX_TTL).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
            assert!(error.to_string().contains(bound), "{error}");
        }
    }

    #[test]
    fn a_ttl_is_rounded_up_to_whole_milliseconds() {
        assert_eq!(
            checked_ttl(Duration::from_micros(10_001), MAX_TTL).unwrap(),
            Duration::from_millis(11)
        );
    }

    #[test]
    fn a_duration_longer_than_max_ttl_is_invalid_and_names_the_bound() {
        let longest = Duration::from_secs(60);
        let longer = Duration::from_secs(61);
        assert!(
            checked_ttl(longest, longest).is_ok() && checked_cooldown(longest, longest).is_ok()
        );
        for error in [
            checked_ttl(longer, longest).unwrap_err(),
            checked_cooldown(longer, longest).unwrap_err(),
        ] {
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
            assert!(error.to_string().contains("max_ttl"), "{error}");
        }
        assert!(
            checked_cooldown(Duration::MAX, MAX_TTL).is_ok(),
            "the cooldown is cut to a day"
        );
    }

    #[test]
    fn a_request_with_one_duration_out_of_bounds_is_invalid() {
        let second = Duration::from_secs(1);
        let durations = RequestDurations {
            ttl: second,
            cooldown: second,
            max_hold: Some(second),
            acquire_timeout: Some(second),
        };
        assert_eq!(durations.checked(second).unwrap(), second);
        let zero = Some(Duration::ZERO);
        for (durations, name) in [
            (
                RequestDurations {
                    ttl: second * 2,
                    ..durations
                },
                "ttl",
            ),
            (
                RequestDurations {
                    cooldown: second * 2,
                    ..durations
                },
                "cooldown",
            ),
            (
                RequestDurations {
                    max_hold: zero,
                    ..durations
                },
                "max_hold",
            ),
            (
                RequestDurations {
                    acquire_timeout: zero,
                    ..durations
                },
                "acquire_timeout",
            ),
        ] {
            let error = durations.checked(second).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn an_endless_cooldown_is_a_day() {
        assert_eq!(cooldown_millis(Duration::MAX), 86_400_000);
        assert_eq!(cooldown_millis(Duration::from_nanos(1)), 1);
    }
}
