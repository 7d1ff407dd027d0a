//! Decides how long a lease may pass from task to task of one process.
//!
//! This is lock cohorting (Dice, Marathe, Shavit: "Lock Cohorting", PPoPP 2012). Everything here is
//! pure, and `now` is an argument. The number of passes and their duration are limited, so that
//! other processes get their turn. At the limit, the process releases the lease, and waits like any
//! other process.
//!
//! Shortly before the limit, the process reads the store's queue. If no process waits there, the
//! count begins again at the moment of the question. So a process that begins to wait waits for one
//! count at most, and a process without competitors seldom pays for a turn through the store.

use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::fence::FencingToken;

/// The most passes in one count.
pub(crate) const MOST_IN_A_COUNT: u32 = 32;
/// The longest duration of one count.
const LONGEST_COUNT: Duration = Duration::from_millis(20);
/// The passes after which the process looks for waiters, so that the answer comes before the limit.
const LOOK_AFTER: u32 = MOST_IN_A_COUNT / 4 * 3;
/// The time after which the process looks for waiters. The answer of a server that is up to 10 ms away comes before the limit.
const LOOK_AT: Duration = Duration::from_millis(10);

/// The most passes of one lease, in all its counts.
///
/// A fencing token grows by one with each pass, and it must stay below the server's clock. The clock
/// has moved by at least 10 ms when a lease ends, because no ttl is shorter.
pub(crate) const MOST: u32 = 1_000;
/// The longest time from a lease's grant to its last pass. Clients of other libraries stand in no queue, and find
/// the key free at times.
const LONGEST: Duration = Duration::from_secs(1);

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
    count: Count,
}

/// The passes since the grant, or since the last look that found no waiter.
#[derive(Clone, Copy, Debug)]
struct Count {
    since: Moment,
    passes: u32,
    has_looked: bool,
}

impl Cohort {
    pub(crate) fn new(granted: Moment) -> Self {
        Self {
            granted,
            passes: 0,
            count: Count::since(granted),
        }
    }

    /// Returns the cohort with one more pass, or `None` if the lease must be released.
    pub(crate) fn passed(self, now: Moment) -> Option<Self> {
        let count = self.count.passed(now)?;
        let over = self.passes >= MOST || now >= self.granted + LONGEST;
        (!over).then_some(Self {
            passes: self.passes + 1,
            count,
            ..self
        })
    }

    /// Returns whether to look for waiters now, at most once in each count.
    pub(crate) fn is_to_look(&mut self, now: Moment) -> bool {
        let late = self.count.passes >= LOOK_AFTER || now >= self.count.since + LOOK_AT;
        late && !std::mem::replace(&mut self.count.has_looked, true)
    }

    /// Begins the count again at `then`, because no process waited at some moment after `then`.
    pub(crate) fn found_no_waiter(&mut self, then: Moment) {
        if then > self.count.since {
            self.count = Count::since(then);
        }
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

impl Count {
    fn since(since: Moment) -> Self {
        Self {
            since,
            passes: 0,
            has_looked: false,
        }
    }

    fn passed(self, now: Moment) -> Option<Self> {
        let over = self.passes >= MOST_IN_A_COUNT || now >= self.since + LONGEST_COUNT;
        (!over).then_some(Self {
            passes: self.passes + 1,
            ..self
        })
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
        for _ in 0..MOST_IN_A_COUNT {
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
    fn a_look_is_due_once_before_the_count_ends() {
        let mut cohort = Cohort::new(START);
        assert!(!cohort.is_to_look(after(9)));
        assert!(cohort.is_to_look(after(10)));
        assert!(!cohort.is_to_look(after(19)));
        let mut often = Cohort::new(START);
        for _ in 0..LOOK_AFTER {
            assert!(!often.is_to_look(START));
            often = often.passed(START).expect("not often enough");
        }
        assert!(often.is_to_look(START));
    }

    #[test]
    fn a_look_that_finds_no_waiter_begins_the_count_again_at_the_question() {
        let mut cohort = Cohort::new(START);
        assert!(cohort.is_to_look(after(16)));
        cohort.found_no_waiter(after(16));
        assert!(cohort.passed(after(35)).is_some());
        assert!(cohort.passed(after(36)).is_none());
        assert!(cohort.is_to_look(after(26)), "each count has a look");
    }

    #[test]
    fn a_process_without_competitors_still_releases_the_lease_at_times() {
        let mut cohort = Cohort::new(START);
        for millis in 1..1_000 {
            cohort = cohort.passed(after(millis)).expect("alone");
            cohort.found_no_waiter(after(millis));
        }
        assert!(cohort.passed(after(1_000)).is_none());
        let mut fast = Cohort::new(START);
        for micros in 1..=u64::from(MOST) {
            let now = START + Duration::from_micros(micros);
            fast = fast.passed(now).expect("alone");
            fast.found_no_waiter(now);
        }
        assert!(fast.passed(after(2)).is_none());
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
