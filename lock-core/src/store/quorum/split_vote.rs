//! What to do when several take some of the nodes each: pure.
//!
//! All of them give back what they have, and try again after a random time of up to a bound that
//! doubles ("full jitter"), until one has a majority before the others come. Unless one of the others is
//! found in the same place again and again: it does not give back what it has, because it has the lock,
//! with nodes that do not answer.

use std::time::Duration;

use crate::base::token::Token;
use crate::lease::backoff::jitter;

/// How often one attempt is repeated.
const MOST: u32 = 10;
/// In so many rounds on end one who has not got the lock is rarely found.
const STAYS: u32 = 4;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(64);

/// How long to wait before the `round`-th repetition (from 0); `None`: it is enough. `trip`: how long
/// the nodes took to answer, because whoever comes within that comes at the same time.
pub(super) fn pause(token: Token, round: u32, trip: Duration) -> Option<Duration> {
    if round >= MOST {
        return None;
    }
    let bound = (trip * 2)
        .max(SHORTEST)
        .saturating_mul(1 << round)
        .min(LONGEST.max(trip * 2));
    Some(jitter(token, round + 1, bound))
}

/// The one who stands on the most nodes, round after round.
#[derive(Debug, Default)]
pub(super) struct Rival {
    owner: Box<str>,
    rounds: u32,
}

impl Rival {
    /// Whether it was there in so many rounds on end that it has the lock, as it seems.
    pub(super) fn stays(&mut self, owner: Option<&str>) -> bool {
        let owner = owner.unwrap_or_default();
        if *self.owner != *owner {
            self.owner = owner.into();
            self.rounds = 0;
        }
        self.rounds += 1;
        self.rounds >= STAYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::token::{Address, TokenSource};

    #[test]
    fn repetitions_are_spread_over_a_span_that_doubles_up_to_a_bound_and_end() {
        let tokens = TokenSource::new(Address::random());
        let trip = Duration::from_micros(200);
        for (round, bound) in [(0, 1), (1, 2), (3, 8), (6, 64), (9, 64)] {
            let bound = Duration::from_millis(bound);
            let pauses: Vec<_> = (0..1_000)
                .map(|_| pause(tokens.fresh(), round, trip).expect("once more"))
                .collect();
            assert!(pauses.iter().all(|pause| *pause < bound));
            let mean = pauses.iter().sum::<Duration>() / 1_000;
            assert!(
                mean > bound / 3 && mean < bound * 2 / 3,
                "{mean:?} of {bound:?}"
            );
        }
        assert_eq!(pause(tokens.fresh(), MOST, trip), None);
    }

    #[test]
    fn a_rival_that_is_found_again_and_again_stays() {
        let mut rival = Rival::default();
        let rounds = ["a", "a", "b", "a", "a", "a", "a", "b"];
        let stays = rounds.map(|owner| rival.stays(Some(owner)));
        let once = [false, false, false, false, false, false, true, false];
        assert_eq!(stays, once);
    }

    #[test]
    fn slow_nodes_are_given_more_time() {
        let tokens = TokenSource::new(Address::random());
        let trip = Duration::from_millis(100);
        let longest = (0..1_000)
            .filter_map(|_| pause(tokens.fresh(), 0, trip))
            .max();
        assert!(longest > Some(Duration::from_millis(150)));
    }
}
