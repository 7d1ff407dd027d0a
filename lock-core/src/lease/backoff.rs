//! Decides how long a waiter pauses before it asks again. Everything here is pure.

use std::time::Duration;

use super::Refusal;
use crate::base::token::Token;

/// The longest time after which a waiter asks again, even if it expects a push.
///
/// It bounds the cost of a lost push, of a key that was deleted by hand, and of earlier waiters
/// that received the lock and died.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);
/// The shortest pause between two polls by a waiter without pushes.
///
/// No push comes if the owner is a client of another library, if the waiter stands in no queue, or
/// if its connection gets no pushes. The pause is random for two reasons: processes do not poll at
/// the same moment, and a client that takes the lock in a fixed rhythm does not hide it. The pause
/// does not grow with time, because a newcomer would then get the lock before a waiter that has
/// waited long. All waiters of a process poll together, 20 times a second.
const SHORTEST_POLL: Duration = Duration::from_millis(25);
const LONGEST_POLL: Duration = Duration::from_millis(75);
/// The longest pause before a new campaign for a leadership.
const LONGEST_CAMPAIGN_PAUSE: Duration = Duration::from_secs(10);
/// The duration of failures after which a waiter gives up.
///
/// It counts from the end of the first request that failed.
pub(crate) const OUTAGE: Duration = Duration::from_secs(1);

/// Returns the pause before the waiter asks again, if no push comes first.
///
/// `round` counts the refusals in a row.
pub(crate) fn ask_again_after(refusal: &Refusal, token: Token, round: u32) -> Duration {
    let lease_end = refusal
        .remaining
        .map(|left| left + Duration::from_millis(1));
    let longest = if refusal.pushed {
        LONGEST
    } else {
        SHORTEST_POLL + jitter(token, round, LONGEST_POLL - SHORTEST_POLL)
    };
    lease_end.unwrap_or(longest).min(longest)
}

/// Returns the pause after the `failures`-th attempt without an answer (from 1).
pub(crate) fn pause_after_failure(failures: u32) -> Duration {
    doubled(failures).min(Duration::from_millis(250))
}

/// Returns the pause after the `refusals`-th answer (from 1) that only an operator can change.
pub(crate) fn pause_after_refusal(refusals: u32) -> Duration {
    // The pause is short, because the key may be free while its waiters are not served. They then
    // wait less than two seconds beside a free key.
    doubled(refusals).min(Duration::from_secs(1))
}

/// Returns the pause before the `times`-th new campaign (from 1) of a process that has lost its leadership, or could
/// not ask for it.
///
/// A leader whose lock is lost again and again would otherwise start and drop its work all the time.
pub(crate) fn pause_before_campaign(times: u32) -> Duration {
    let pause = doubled(times).saturating_mul(10);
    pause.min(LONGEST_CAMPAIGN_PAUSE)
}

fn doubled(times: u32) -> Duration {
    Duration::from_millis(10).saturating_mul(1 << times.saturating_sub(1).min(9))
}

/// Returns a pseudo-random duration between zero and `bound`.
///
/// It depends on the lease's random token, so leases have different durations. The bits of token and round are mixed by
/// the last steps of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
pub(crate) fn jitter(token: Token, round: u32, bound: Duration) -> Duration {
    let mut hash = token.seed() ^ u64::from(round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    bound.mul_f64((hash >> 11) as f64 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::token::{Address, TokenSource};

    fn token() -> Token {
        TokenSource::new(Address::random()).fresh()
    }

    fn refusal(remaining: Option<u64>, pushed: bool) -> Refusal {
        Refusal {
            cooling: false,
            record: None,
            remaining: remaining.map(Duration::from_millis),
            queued: pushed,
            pushed,
            shared: false,
            full: None,
            server_time: None,
        }
    }

    #[test]
    fn a_crashed_owner_is_noticed_when_its_lease_has_run_out() {
        assert_eq!(
            ask_again_after(&refusal(Some(4_000), true), token(), 0),
            Duration::from_millis(4_001)
        );
    }

    #[test]
    fn a_long_lease_is_checked_every_half_minute() {
        let refusal = refusal(Some(3_600_000), true);
        assert_eq!(ask_again_after(&refusal, token(), 9), LONGEST);
    }

    #[test]
    fn a_waiter_without_pushes_polls_as_often_after_an_hour_as_at_first() {
        let (refusal, token) = (refusal(None, false), token());
        let mean = |rounds: std::ops::Range<u32>| {
            let polls = rounds.map(|round| ask_again_after(&refusal, token, round));
            let polls: Vec<_> = polls.collect();
            assert!(
                polls
                    .iter()
                    .all(|poll| *poll >= SHORTEST_POLL && *poll < LONGEST_POLL)
            );
            polls.iter().sum::<Duration>() / 1_000
        };
        let (first, last) = (mean(0..1_000), mean(72_000..73_000));
        for mean in [first, last] {
            assert!(
                mean.abs_diff(Duration::from_millis(50)) < Duration::from_millis(5),
                "{mean:?}"
            );
        }
    }

    #[test]
    fn a_lease_that_ends_before_the_next_poll_is_polled_at_its_end() {
        assert_eq!(
            ask_again_after(&refusal(Some(20), false), token(), 9),
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

    #[test]
    fn pauses_after_refusals_grow_to_a_second() {
        let pauses: Vec<_> = (1..12)
            .map(|refusals| pause_after_refusal(refusals).as_millis())
            .collect();
        let grown = [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000, 1_000];
        assert_eq!(pauses, grown);
    }

    #[test]
    fn pauses_are_spread_as_the_numbers_of_split_mix_64() {
        // The first numbers of SplitMix64 with the seed 0, as fractions of 2^64. The token's seed is 0.
        let numbers = [883_310, 431_527, 26_433];
        let second = Duration::from_secs(1);
        let pauses = [1, 2, 3].map(|round| jitter(Token::NOBODY, round, second).as_micros());
        assert_eq!(pauses, numbers);
    }
}
