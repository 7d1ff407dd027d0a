//! Decides how long a lease may pass from task to task of one process.
//!
//! This is lock cohorting (Dice, Marathe, Shavit: "Lock Cohorting", PPoPP 2012). Everything here is
//! pure, and `now` is an argument. The number of passes and their duration are limited, so that
//! other processes get their turn. At the limit, the process releases the lease, and waits like any
//! other process.

use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::fence::FencingToken;

/// The most passes of one lease.
///
/// A fencing token grows by one with each pass, and it must stay below the server's clock. The clock
/// has moved by at least 10 ms when a lease ends, because no ttl is shorter.
pub(crate) const MOST: u32 = 32;
/// The longest time from a lease's grant to its last pass.
const LONGEST: Duration = Duration::from_millis(20);

/// The time for which a key is left free for clients of other libraries.
pub(crate) const GAP: Duration = Duration::from_millis(50);
/// The time between the starts of two gaps, by the store's clock.
///
/// Relative to the gaps, the requests of a client that asks every 100, 200, 250 or 500 ms shift by
/// 37 ms from one gap to the next. A shift is shorter than a gap, so no such client misses all
/// gaps.
const BETWEEN_GAPS: Duration = Duration::from_millis(1_037);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cohort {
    granted: Moment,
    passes: u32,
}

impl Cohort {
    pub(crate) fn new(granted: Moment) -> Self {
        Self { granted, passes: 0 }
    }

    /// Returns the cohort with one more pass, or `None` if the lease must be released.
    pub(crate) fn passed(self, now: Moment) -> Option<Self> {
        let over = self.passes >= MOST || now >= self.granted + LONGEST;
        (!over).then_some(Self {
            passes: self.passes + 1,
            ..self
        })
    }

    /// Returns whether the lease must leave a gap.
    ///
    /// Gaps are due at fixed times of the store's clock, and the lease that is held at such a time
    /// leaves the gap. So all processes together leave one gap, although no process knows of the
    /// others' gaps. `fence` is the lease's present fencing token. Its first token was the clock's
    /// time at the grant.
    pub(crate) fn leaves_a_gap(&self, fence: FencingToken, now: Moment) -> bool {
        let granted = u64::from(fence).saturating_sub(u64::from(self.passes));
        let since_the_last = u128::from(granted) % BETWEEN_GAPS.as_micros();
        since_the_last + now.since(self.granted).as_micros() >= BETWEEN_GAPS.as_micros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment(1_000_000_000_000);

    fn after(millis: u64) -> Moment {
        START + Duration::from_millis(millis)
    }

    #[test]
    fn a_lease_is_passed_32_times_and_no_more() {
        let mut cohort = Cohort::new(START);
        for _ in 0..MOST {
            cohort = cohort.passed(after(1)).expect("not often enough");
        }
        assert!(cohort.passed(after(1)).is_none());
    }

    #[test]
    fn a_lease_is_passed_for_20_ms_and_no_longer() {
        let cohort = Cohort::new(START);
        assert!(cohort.passed(after(19)).is_some());
        assert!(cohort.passed(after(20)).is_none());
    }

    #[test]
    fn one_of_consecutive_leases_leaves_a_gap_each_second() {
        // Each owner begins when the previous owner ends.
        for span in [2, 20, 300, 1_000] {
            let gaps = (0..60_000 / span).filter(|turn| {
                let granted = FencingToken::new(1_700_000_000_000_000 + turn * span * 1_000);
                let cohort = Cohort::new(START);
                cohort.leaves_a_gap(granted.expect("a token"), after(span))
            });
            let gaps = gaps.count();
            assert!((57..=58).contains(&gaps), "{gaps} with leases of {span} ms");
        }
    }

    #[test]
    fn clients_that_poll_at_common_intervals_hit_a_gap() {
        let (between, gap) = (BETWEEN_GAPS.as_millis(), GAP.as_millis());
        for rhythm in [10, 50, 100, 200, 250, 500, 1_000] {
            for first in 0..rhythm {
                let mut gaps = (0..30).map(|turn| turn * between..turn * between + gap);
                let asks = |millis: u128| (millis + first).is_multiple_of(rhythm);
                let met = gaps.any(|mut gap| gap.any(asks));
                assert!(met, "every {rhythm} ms from {first} on");
            }
        }
    }
}
