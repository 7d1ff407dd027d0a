//! Leases that this process holds, and their way from task to task.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::tests::{another, contender, held, key, options};
use super::{Admission, PlaceInLine, Successor, Verdict};
use crate::LockManager;
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::fence::FencingToken;
use crate::engine::Engine;
use crate::store::Lane;
use crate::test_util::ManualClock;

/// Its keeper does nothing, because its clock stands still.
fn still() -> Arc<Engine> {
    let locks = LockManager::builder("memory:").clock(ManualClock::new());
    let locks = locks.connect_lazy().expect("an embedded store");
    Arc::clone(locks.engine())
}

fn waiter(engine: &Arc<Engine>) -> PlaceInLine {
    match engine.queue.enter(&key(), true, options(), &mut None) {
        Admission::Queued(place) => place,
        Admission::Decided(_) => panic!("the key is held"),
    }
}

/// Returns whether the process knows that it holds the lease, and no other one of the key.
fn is_held(engine: &Engine, lease: &Arc<ActiveLease>) -> bool {
    let of_key = engine.queue.held_at(&key());
    let of_token = engine.queue.held_by(&key(), &lease.token.into());
    of_key.len() == 1 && of_token.is_some_and(|found| Arc::ptr_eq(&found, lease))
}

#[test]
fn a_lease_is_found_by_its_key_and_by_its_token_with_and_without_waiters_behind() {
    let engine = still();
    let lease = held(&engine, 1);
    assert!(is_held(&engine, &lease));
    let _waiter = waiter(&engine);
    assert!(is_held(&engine, &lease));
}

#[test]
fn the_lease_of_the_next_owner_is_picked_up_once_and_renewed_in_place_of_the_last_one() {
    let engine = still();
    let lease = held(&engine, 1);
    engine.keeper.arm(&lease);
    assert_eq!(Some(lease.scheduled()), lease.due());
    let mut waiter = waiter(&engine);
    let handed_on = engine.queue.hand_on(&lease);
    assert!(matches!(handed_on, Successor::Waiter(_)));
    let verdict = waiter.poll_verdict(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Verdict::Handoff(mut handoff)) = verdict else {
        panic!("it has the lease");
    };
    assert!(handoff.pick_up());
    let next = handoff.lease();
    assert!(!next.pick_up(), "it has its owner");
    assert_eq!(lease.scheduled(), Moment::FAR);
    assert_eq!(Some(next.scheduled()), next.due());
    assert!(next.due() < Some(Moment::FAR));
}

/// A lease that came to this process by a ticket.
fn by_ticket(engine: &Arc<Engine>) -> Arc<ActiveLease> {
    let lease = another(engine);
    let swapping = engine.queue.swaps_in(&lease);
    let now = engine.now();
    lease.ask(now + Duration::from_secs(5));
    assert!(lease.grant(now, FencingToken::new(1).expect("a token")));
    swapping.granted(&lease);
    lease
}

#[test]
fn other_tasks_are_refused_while_the_process_holds_a_lease_that_came_by_a_ticket() {
    let engine = still();
    let lease = by_ticket(&engine);
    assert!(is_held(&engine, &lease));
    let newcomer = engine.queue.enter(&key(), false, options(), &mut None);
    assert!(matches!(newcomer, Admission::Decided(Verdict::Busy(_))));
}

/// The store refuses the task, and serves it when the lease has ended.
#[test]
fn a_task_that_asks_goes_on_beside_a_lease_that_came_by_a_ticket() {
    let engine = still();
    let contender = contender(&engine);
    let lease = by_ticket(&engine);
    assert!(is_held(&engine, &lease));
    let asks = contender.asking(&another(&engine), Lane::KEEPER, None, engine.now());
    assert!(asks.is_ok(), "it has the seat");
}
