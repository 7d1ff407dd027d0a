//! How long a waiter waits before it asks again: pure decisions.

use std::time::Duration;

use crate::store::Refusal;

/// A waiter asks again after this long at the latest, whatever it was told: a lost push, a key
/// deleted by hand, or processes before it that were told and never come, cost no more.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);
/// How often to look at a lock whose owner pushes nothing: a client of another library, or when
/// this connection gets no pushes.
const SHORTEST_LOOK: Duration = Duration::from_millis(250);
const LONGEST_LOOK: Duration = Duration::from_secs(2);
/// A waiter gives up after this long without any answer.
pub(crate) const OUTAGE: Duration = Duration::from_secs(1);

/// When to ask again after the `round`-th refusal in a row (from 0), if no push comes first.
pub(crate) fn ask_again_after(refusal: &Refusal, round: u32) -> Duration {
    let lease_end = refusal
        .remaining
        .map(|left| left + Duration::from_millis(1));
    let longest = if refusal.pushed {
        LONGEST
    } else {
        SHORTEST_LOOK
            .saturating_mul(1 << round.min(8))
            .min(LONGEST_LOOK)
    };
    lease_end.unwrap_or(longest).min(longest)
}

/// How long to pause after the `failures`-th attempt without an answer (from 1).
pub(crate) fn pause_after_failure(failures: u32) -> Duration {
    Duration::from_millis(10)
        .saturating_mul(1 << failures.saturating_sub(1).min(6))
        .min(Duration::from_millis(250))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(remaining: Option<u64>, pushed: bool) -> Refusal {
        Refusal {
            cooling: false,
            remaining: remaining.map(Duration::from_millis),
            pushed,
            server_time: None,
        }
    }

    #[test]
    fn a_crashed_owner_is_noticed_when_its_lease_has_run_out() {
        assert_eq!(
            ask_again_after(&refusal(Some(4_000), true), 0),
            Duration::from_millis(4_001)
        );
    }

    #[test]
    fn a_long_lease_is_looked_at_every_half_minute() {
        assert_eq!(ask_again_after(&refusal(Some(3_600_000), true), 9), LONGEST);
    }

    #[test]
    fn an_owner_that_pushes_nothing_is_looked_at_ever_less_often() {
        let looks: Vec<_> = (0..6)
            .map(|round| ask_again_after(&refusal(None, false), round).as_millis())
            .collect();
        assert_eq!(looks, [250, 500, 1000, 2000, 2000, 2000]);
        assert_eq!(
            ask_again_after(&refusal(Some(20), false), 9),
            Duration::from_millis(21)
        );
    }

    #[test]
    fn pauses_after_failures_grow_to_a_bound() {
        let pauses: Vec<_> = (1..8)
            .map(|failures| pause_after_failure(failures).as_millis())
            .collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 250, 250]);
    }
}
