//! The fencing tokens of the embedded store.

use std::time::Duration;

use super::state::MemoryState;
use crate::base::clock::ServerTime;
use crate::base::fence::FencingToken;
use crate::base::token::{Address, TokenSource};
use crate::lease::cohort::MOST;
use crate::store::{AcquireCommand, Operation, Outcome, Queueing};

fn fence(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Granted(fence) => u64::from(*fence),
        other => panic!("{other:?}"),
    }
}

fn ask(tokens: &TokenSource, key: &str, ttl: Duration) -> Operation {
    Operation::Acquire(AcquireCommand {
        key: key.into(),
        token: tokens.fresh(),
        ttl,
        queueing: Queueing::Never,
        replaces: None,
        repeated: false,
    })
}

#[test]
fn a_lease_that_ran_out_may_have_used_more_tokens_than_its_own() {
    // No ttl is shorter.
    let ttl = Duration::from_millis(10);
    let tokens = TokenSource::new(Address::random());
    let mut state = MemoryState::default();
    let mut now = 1_700_000_000_000_000;
    let first = fence(&state.run(ask(&tokens, "k", ttl), ServerTime(now)));
    let next = loop {
        now += 1;
        match state.run(ask(&tokens, "k", ttl), ServerTime(now)) {
            Outcome::Busy(_) => {}
            granted => break fence(&granted),
        }
    };
    assert!(next > first + u64::from(MOST), "{next} {first}");
}

#[test]
fn a_clock_that_was_too_far_in_the_future_leaves_no_mark_behind() {
    let tokens = TokenSource::new(Address::random());
    let mut state = MemoryState::default();
    let mut ask = |now| {
        let ask = ask(&tokens, "k", Duration::from_secs(1));
        state.run(ask, ServerTime(now))
    };
    for too_far in [9_000_000_000_000_001, FencingToken::LIMIT, u64::MAX] {
        let refused = ask(too_far);
        assert!(matches!(refused, Outcome::Failed(_)), "{refused:?}");
    }
    assert_eq!(fence(&ask(5_000)), 5_000);
}

#[test]
fn keys_that_are_over_are_forgotten_by_and_by() {
    let tokens = TokenSource::new(Address::random());
    let mut state = MemoryState::default();
    for key in 0_u64..10_000 {
        let ask = ask(&tokens, &key.to_string(), Duration::from_millis(10));
        let granted = state.run(ask, ServerTime(1_000_000 + key * 1_000));
        assert!(matches!(granted, Outcome::Granted(_)), "{granted:?}");
    }
    assert!(state.keys.len() <= 64, "{}", state.keys.len());
}
