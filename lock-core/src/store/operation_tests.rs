//! The key of each operation, by which a store finds its server, and the lanes.

use std::sync::Arc;
use std::time::Duration;

use super::vote::{Propose, VoteOperation, VoteOutcome, Withdrawal};
use super::*;
use crate::base::token::TokenSource;

const TTL: Duration = Duration::from_secs(10);

fn acquire() -> AcquireCommand {
    let token = TokenSource::new(Address::random()).fresh();
    AcquireCommand {
        key: "k".into(),
        token,
        ttl: TTL,
        queueing: Queueing::Never,
        replaces: None,
        repeated: false,
    }
}

#[test]
fn the_server_of_an_operation_is_found_by_its_key() {
    let acquire = acquire();
    let release = acquire.undo();
    let extension = Extension {
        key: Arc::clone(&acquire.key),
        token: acquire.token,
        ttl: TTL,
    };
    let leases = vec![(Arc::clone(&acquire.key), acquire.token)];
    let propose = Propose {
        acquire: acquire.clone(),
        register: 1,
        number: 1,
        max_ttl: TTL,
    };
    let inspect = Inspect {
        key: Arc::clone(&acquire.key),
        register: None,
    };
    for operation in [
        Operation::Acquire(acquire),
        Operation::AcquireAll(AcquireAll { leases, ttl: TTL }),
        Operation::Extend(vec![extension]),
        Operation::Release(release.clone()),
        Operation::Clock("k".into()),
        Operation::Vote(VoteOperation::Propose(propose)),
        Operation::Vote(VoteOperation::Withdraw(release, Withdrawal::Over, None)),
        Operation::Operator(OperatorOperation::Inspect(inspect)),
    ] {
        assert_eq!(operation.key(), "k", "{operation:?}");
    }
    let pattern = Pattern::new("*");
    let from = ScanCursor::default();
    let scan = Operation::Operator(OperatorOperation::Scan(Scan { pattern, from }));
    assert_eq!(scan.key(), "");
}

#[test]
fn an_acquire_is_a_first_attempt_unless_it_waits_or_repeats_or_replaces_another() {
    assert!(acquire().is_first());
    let queued = Queueing::Always;
    let waits = AcquireCommand {
        queueing: queued,
        ..acquire()
    };
    let repeated = AcquireCommand {
        repeated: true,
        ..acquire()
    };
    let before = Replaced {
        token: acquire().token,
        fence: None,
    };
    let replaces = AcquireCommand {
        replaces: Some(before),
        ..acquire()
    };
    for later in [waits, repeated, replaces] {
        assert!(!later.is_first(), "{later:?}");
    }
}

#[test]
fn only_an_answer_to_the_end_of_a_lease_ends_it() {
    assert!(Outcome::Released(Ended::Absent).has_ended());
    assert!(!Outcome::Raised.has_ended());
    let withdrawn = VoteOutcome::withdrawn(Ended::Yes, false);
    assert!(withdrawn.is_withdrawn());
    assert!(!withdrawn.of_the_last_send().is_withdrawn());
}

#[tokio::test]
async fn a_lane_of_a_runtime_is_made_in_that_runtime_and_that_of_the_keeper_anywhere() {
    let lane = Lane::of_this_task().on_channel(2);
    assert_eq!((lane.channel(), lane.is_here()), (2, true));
    assert_ne!(lane, Lane::of_this_task());
    let elsewhere = std::thread::spawn(move || (lane.is_here(), Lane::KEEPER.is_here()));
    assert_eq!(elsewhere.join().expect("no panic"), (false, true));
    assert!(Lane::KEEPER.is_here());
}
