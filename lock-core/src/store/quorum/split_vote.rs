//! Pauses after a split vote, in which several clients have some of the nodes each: pure.
//!
//! Each client withdraws its votes and tries again after a random time up to a bound that doubles ("full
//! jitter"), until one has a majority before the others ask. If the same other client stands on the same nodes
//! round after round, it does not withdraw its votes: it has the lock, with nodes that do not answer.

use std::time::Duration;

use crate::base::token::Token;
use crate::lease::backoff::jitter;

/// How often one attempt is repeated.
const MOST: u32 = 10;
/// A client that does not have the lock rarely stands on the same nodes for so many rounds.
const STAYS: u32 = 4;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(64);

/// The pause before the `round`-th repetition (from 0); `None`: give up. `trip`: how long the nodes took to
/// answer. Clients that ask within that time collide.
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

/// The other client that stands on the most nodes, round after round.
#[derive(Debug, Default)]
pub(super) struct Rival {
    owner: Box<str>,
    rounds: u32,
}

impl Rival {
    /// Returns whether this owner has been found for so many rounds that it seems to have the lock.
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
