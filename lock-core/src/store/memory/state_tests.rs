//! The fencing tokens of the embedded store.

use std::time::Duration;

use super::state::MemoryState;
use crate::base::clock::Moment;
use crate::base::fence::FencingToken;
use crate::base::token::{Address, TokenSource};
use crate::lease::cohort::MOST;
use crate::store::{AcquireCommand, Outcome, Queueing};

fn fence(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Granted(fence) => u64::from(*fence),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lease_that_ran_out_may_have_used_more_tokens_than_its_own() {
    let ttl = Duration::from_secs(1);
    let start = Moment(1_000_000_000);
    let tokens = TokenSource::new(Address::random());
    let ask = |key: &str| AcquireCommand {
        key: key.into(),
        token: tokens.fresh(),
        ttl,
        queueing: Queueing::Never,
        replaces: None,
        repeated: false,
    };
    // Found by the next acquire of the same key, or by a sweep.
    for others in [0, 200] {
        let mut state = MemoryState::default();
        let first = fence(&state.acquire(&ask("k"), start, 5_000).0);
        // The clock of the fencing tokens has stood still.
        let later = start + ttl;
        for other in 0..others {
            state.acquire(&ask(&other.to_string()), later, 5_000);
        }
        let next = fence(&state.acquire(&ask("k"), later, 5_000).0);
        assert!(next > first + u64::from(MOST), "{next} {first}");
    }
}

#[test]
fn a_clock_that_was_too_far_in_the_future_leaves_no_mark_behind() {
    let now = Moment(1_000_000_000);
    let tokens = TokenSource::new(Address::random());
    let mut state = MemoryState::default();
    let mut ask = |key: &str, unix_micros| {
        let acquire = AcquireCommand {
            key: key.into(),
            token: tokens.fresh(),
            ttl: Duration::from_secs(1),
            queueing: Queueing::Never,
            replaces: None,
            repeated: false,
        };
        state.acquire(&acquire, now, unix_micros).0
    };
    for too_far in [9_000_000_000_000_001, FencingToken::LIMIT, u64::MAX] {
        let refused = ask("k", too_far);
        assert!(matches!(refused, Outcome::Failed(_)), "{refused:?}");
    }
    assert_eq!(fence(&ask("k", 5_000)), 5_000);
}
