//! How long a lease may go from task to task of one process: pure, `now` is an argument.
//!
//! For so many times and so long only that other processes have their turn. Shortly before that the
//! process looks whether there is any: if nobody stood in the store's queue, the count begins anew,
//! from the moment at which it looked. So whoever comes to the queue waits no longer than one count.

use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::fence::FencingToken;

/// One count: so many passes, within so long.
pub(crate) const MOST: u32 = 32;
const LONGEST: Duration = Duration::from_millis(20);
/// When to look: early enough to have the answer before the count is over.
const LOOK_AFTER: u32 = MOST / 4 * 3;
const LOOK_AT: Duration = Duration::from_millis(15);
/// All counts together. Clients of other libraries stand in no queue, and must find the key free at
/// times. And a fencing token grows by one with each pass: it must stay below the clock, by which a
/// lease ends 10 ms after its grant at the earliest.
pub(crate) const MOST_IN_ALL: u32 = 1_000;
const LONGEST_IN_ALL: Duration = Duration::from_secs(1);

/// For so long a key that clients of other libraries want too is left free: about once a second.
pub(crate) const GAP: Duration = Duration::from_millis(50);
/// How often, by the store's clock. Clients that ask every 100, 200, 250 or 500 ms come a little later, measured
/// from each gap, than from the one before, and by less than a gap: none of them misses all gaps.
const BETWEEN_GAPS: Duration = Duration::from_millis(1_037);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cohort {
    granted: Moment,
    since: Moment,
    passes: u32,
    passes_in_all: u32,
    looked: bool,
}

impl Cohort {
    pub(crate) fn new(granted: Moment) -> Self {
        Self {
            granted,
            since: granted,
            passes: 0,
            passes_in_all: 0,
            looked: false,
        }
    }

    /// With one pass more; `None`: the lease must be given back.
    pub(crate) fn passed(self, now: Moment) -> Option<Self> {
        let over = self.passes >= MOST
            || now >= self.since + LONGEST
            || self.passes_in_all >= MOST_IN_ALL
            || now >= self.granted + LONGEST_IN_ALL;
        (!over).then_some(Self {
            passes: self.passes + 1,
            passes_in_all: self.passes_in_all + 1,
            ..self
        })
    }

    /// `true` if a gap is due. One is due at fixed times of the store's clock, and the lease that is
    /// held then leaves it. So there is one for all processes, although none knows of the others' gaps.
    /// `fence` is that of the lease now: its first one was that clock's time at the grant.
    pub(crate) fn leaves_a_gap(&self, fence: FencingToken, now: Moment) -> bool {
        let granted = u64::from(fence).saturating_sub(u64::from(self.passes_in_all));
        let since_the_last = u128::from(granted) % BETWEEN_GAPS.as_micros();
        since_the_last + now.since(self.granted).as_micros() >= BETWEEN_GAPS.as_micros()
    }

    /// Whether to look now: once in each count.
    pub(crate) fn looks_around(&mut self, now: Moment) -> bool {
        let late = self.passes >= LOOK_AFTER || now >= self.since + LOOK_AT;
        late && !std::mem::replace(&mut self.looked, true)
    }

    /// Nobody waited at some time after `then`.
    pub(crate) fn begins_anew(&mut self, then: Moment) {
        if then > self.since {
            self.since = then;
            self.passes = 0;
            self.looked = false;
        }
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
    fn a_lease_is_passed_so_often_and_no_more() {
        let mut cohort = Cohort::new(START);
        for _ in 0..MOST {
            cohort = cohort.passed(after(1)).expect("not often enough");
        }
        assert!(cohort.passed(after(1)).is_none());
    }

    #[test]
    fn a_lease_is_passed_so_long_and_no_longer() {
        let cohort = Cohort::new(START);
        assert!(cohort.passed(after(19)).is_some());
        assert!(cohort.passed(after(20)).is_none());
    }

    #[test]
    fn a_look_comes_before_the_end_and_once() {
        let mut cohort = Cohort::new(START);
        assert!(!cohort.looks_around(after(14)));
        assert!(cohort.looks_around(after(15)));
        assert!(!cohort.looks_around(after(19)));
        let mut often = Cohort::new(START);
        for _ in 0..LOOK_AFTER {
            assert!(!often.looks_around(START));
            often = often.passed(START).expect("not often enough");
        }
        assert!(often.looks_around(START));
    }

    #[test]
    fn a_look_that_finds_nobody_begins_the_count_at_the_look() {
        let mut cohort = Cohort::new(START);
        assert!(cohort.looks_around(after(16)));
        cohort.begins_anew(after(16));
        assert!(cohort.passed(after(35)).is_some());
        assert!(cohort.passed(after(36)).is_none());
        assert!(cohort.looks_around(after(31)), "and looks again");
    }

    #[test]
    fn of_leases_that_follow_each_other_one_in_a_second_leaves_a_gap() {
        // Each owner begins where the one before has ended.
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
    fn clients_that_ask_in_a_usual_rhythm_ask_in_some_gap() {
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

    #[test]
    fn even_alone_a_process_gives_the_lease_back_at_times() {
        let mut cohort = Cohort::new(START);
        for millis in 1..1_000 {
            cohort = cohort.passed(after(millis)).expect("alone");
            cohort.begins_anew(after(millis));
        }
        assert!(cohort.passed(after(1_000)).is_none());
        let mut fast = Cohort::new(START);
        for micros in 1..=u64::from(MOST_IN_ALL) {
            let now = START + Duration::from_micros(micros);
            fast = fast.passed(now).expect("alone");
            fast.begins_anew(now);
        }
        assert!(fast.passed(after(2)).is_none());
    }
}
