//! What the queue of a process knows of leases that are over: a late push for one of them must not be
//! undone by whoever hears it.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{Admission, Contender, ReleaseState, Verdict};
use crate::LockManager;
use crate::active::ActiveLease;
use crate::base::clock::ServerTime;
use crate::base::fence::FencingToken;
use crate::engine::Engine;
use crate::lease::{LeaseOptions, Loss, Phase};
use crate::store::{Grant, Lane, News, Operation, Refusal, Replaced};
#[cfg(feature = "test-util")]
use crate::test_util::ManualClock;

pub(super) fn engine() -> Arc<Engine> {
    Arc::clone(LockManager::in_memory().engine())
}

pub(super) fn key() -> Arc<str> {
    "k".into()
}

pub(super) fn options() -> LeaseOptions {
    LeaseOptions::new(Duration::from_secs(60), true, None)
}

pub(super) fn contender(engine: &Arc<Engine>) -> Contender {
    match engine.queue.enter(&key(), false, options(), &mut None) {
        Admission::Decided(Verdict::Contend(contender)) => contender,
        _ => panic!("the seat is taken"),
    }
}

pub(super) fn another(engine: &Arc<Engine>) -> Arc<ActiveLease> {
    ActiveLease::new(
        &key(),
        engine
            .tokens
            .fresh_at(engine.tokens.manager(), engine.now()),
        options(),
        engine.timers.clock(),
    )
}

/// Which lease the question for this one steps over.
fn names(engine: &Engine, contender: &Contender, lease: &Arc<ActiveLease>) -> Option<Replaced> {
    let now = engine.now();
    let before = contender.asking(lease, Lane::KEEPER, None, now);
    let before = before.expect("it has the seat");
    before.map(|before| before.lease)
}

/// A lease that somebody asks for.
fn asked_for(engine: &Arc<Engine>, contender: &Contender) -> Arc<ActiveLease> {
    let lease = another(engine);
    names(engine, contender, &lease);
    lease
}

/// The refusal of a waiter that is in the store's queue, by a lease that lasts for so long.
pub(super) fn queued_for(remaining: Duration) -> Refusal {
    Refusal {
        cooling: false,
        record: None,
        remaining: Some(remaining),
        queued: true,
        pushed: true,
        shared: false,
        full: None,
        server_time: None,
    }
}

/// A lease that this process holds.
pub(super) fn held(engine: &Arc<Engine>, fence: u64) -> Arc<ActiveLease> {
    let contender = contender(engine);
    let lease = asked_for(engine, &contender);
    let now = engine.now();
    lease.ask(now + Duration::from_secs(5));
    assert!(lease.grant(now, FencingToken::new(fence).expect("a token")));
    assert!(contender.granted(&lease));
    lease
}

fn is_known(engine: &Arc<Engine>, lease: &ActiveLease) -> bool {
    let fence = FencingToken::new(9).expect("a token");
    let ends = ServerTime(9);
    let late = News::Given(Grant {
        asks: false,
        fence,
        given: ends,
        ends,
    });
    engine.queue.tell(&key(), lease.token, late)
}

#[test]
fn each_release_under_way_is_known_until_it_is_answered() {
    let engine = engine();
    let first = held(&engine, 1);
    engine.queue.leave(&first, ReleaseState::Steppable(None));
    let second = {
        let contender = contender(&engine);
        let lease = asked_for(&engine, &contender);
        engine.queue.note_unreleased(&lease);
        lease
    };
    assert!(is_known(&engine, &first) && is_known(&engine, &second));
    engine.queue.confirm_release(&second.release());
    assert!(is_known(&engine, &first) && !is_known(&engine, &second));
    let contender = contender(&engine);
    assert_eq!(
        names(&engine, &contender, &another(&engine)),
        Some(first.replaced()),
        "it may be stepped over again"
    );
    drop(contender);
    engine.queue.confirm_release(&first.release());
    assert!(!is_known(&engine, &first));
    assert!(engine.queue.is_empty());
}

/// The runtime of a process that stood still may hear of the order before the task hears of its grant.
#[test]
fn a_grant_that_is_heard_behind_the_order_to_free_it_is_lost_at_once() {
    let engine = engine();
    let grant = |contender: Contender, lease: &Arc<ActiveLease>| {
        let now = engine.now();
        lease.ask(now + Duration::from_secs(5));
        assert!(lease.grant(now, FencingToken::new(1).expect("a token")));
        assert!(contender.granted(lease));
        lease.noticed_phase()
    };
    let first = contender(&engine);
    let lease = asked_for(&engine, &first);
    let freed = engine.queue.force(&key(), &lease.token.into());
    assert!(freed.is_none(), "it is not held yet");
    assert_eq!(grant(first, &lease), Phase::Lost(Loss::Forced));
    // The key is open for other tasks.
    let second = contender(&engine);
    let lease = asked_for(&engine, &second);
    engine.queue.force(&key(), &lease.token.into());
    names(&engine, &second, &lease);
    let phase = grant(second, &lease);
    assert_eq!(phase, Phase::Held, "it has asked since");
}

#[test]
fn a_swap_that_is_heard_behind_the_order_to_free_its_lease_is_lost_at_once() {
    let engine = engine();
    let swapped_in = |freed: bool| {
        let lease = another(&engine);
        let swapping = engine.queue.swaps_in(&lease);
        if freed {
            let held = engine.queue.force(&key(), &lease.token.into());
            assert!(held.is_none(), "it is not held yet");
        }
        let now = engine.now();
        lease.ask(now + Duration::from_secs(5));
        assert!(lease.grant(now, FencingToken::new(1).expect("a token")));
        swapping.granted(&lease);
        lease.noticed_phase()
    };
    assert_eq!(swapped_in(true), Phase::Lost(Loss::Forced));
    assert_eq!(swapped_in(false), Phase::Held, "the order was for another");
}

/// The push of a waiter behind the first one may overtake the refusal, and names a time that is seconds away.
#[test]
fn a_caller_that_does_not_wait_makes_a_contender_ask_that_a_push_has_told_to_rest() {
    let engine = engine();
    let contender = contender(&engine);
    let lease = asked_for(&engine, &contender);
    let a_while = Duration::from_secs(2);
    let told = engine.queue.tell(&key(), lease.token, News::Next(a_while));
    assert!(told, "the contender is known");
    let refusal = queued_for(a_while);
    let until = engine.now() + a_while;
    contender.refused(&refusal, until, until);
    let mut context = Context::from_waker(Waker::noop());
    let news = contender.poll_news(&mut context);
    assert!(matches!(news, Poll::Ready(News::Next(after)) if after == a_while));
    contender.waits(until);
    assert!(contender.poll_news(&mut context).is_pending(), "it rests");
    let newcomer = engine.queue.enter(&key(), false, options(), &mut None);
    assert!(matches!(newcomer, Admission::Queued(_)));
    let news = contender.poll_news(&mut context);
    assert!(
        matches!(news, Poll::Ready(News::Ask)),
        "the newcomer would get no answer before the contender asks"
    );
}

/// The first push asks whether the waiter still waits. The second one is about a later lease, and may come in the same packet.
#[test]
fn a_waiter_that_was_told_to_ask_now_does_so_although_a_later_push_has_it_rest() {
    let engine = engine();
    let contender = contender(&engine);
    let lease = asked_for(&engine, &contender);
    contender.waits(engine.now() + Duration::from_secs(60));
    for after in [Duration::ZERO, Duration::from_secs(2)] {
        engine.queue.tell(&key(), lease.token, News::Next(after));
    }
    let news = contender.poll_news(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(news, Poll::Ready(News::Ask)), "{news:?}");
}

/// The next owner may be killed, and its end is pushed to its own process only.
#[cfg(feature = "test-util")]
#[test]
fn a_refusal_is_a_fact_for_a_tenth_of_a_second() {
    let clock = ManualClock::new();
    let locks = LockManager::builder("memory:").clock(clock.clone());
    let locks = locks.connect_lazy().expect("an embedded store");
    let engine = Arc::clone(locks.engine());
    let contender = contender(&engine);
    asked_for(&engine, &contender);
    let a_minute = Duration::from_secs(60);
    let refusal = Refusal {
        cooling: false,
        record: None,
        remaining: Some(a_minute),
        queued: true,
        pushed: true,
        shared: false,
        full: None,
        server_time: None,
    };
    let until = engine.now() + a_minute;
    contender.refused(&refusal, until, until);
    let newcomer = || engine.queue.enter(&key(), false, options(), &mut None);
    clock.advance(Duration::from_millis(99));
    assert!(matches!(newcomer(), Admission::Decided(Verdict::Busy(_))));
    clock.advance(Duration::from_millis(1));
    assert!(matches!(newcomer(), Admission::Queued(_)));
    let mut context = Context::from_waker(Waker::noop());
    let news = contender.poll_news(&mut context);
    assert!(matches!(news, Poll::Ready(News::Ask)), "it asks for both");
}

#[test]
fn a_caller_is_not_told_of_a_cooldown_when_a_push_has_announced_what_is_behind_it() {
    let engine = engine();
    let contender = contender(&engine);
    let lease = asked_for(&engine, &contender);
    let a_while = Duration::from_secs(2);
    let refusal = Refusal {
        cooling: true,
        ..queued_for(a_while)
    };
    let until = engine.now() + a_while;
    contender.refused(&refusal, until, until);
    let enter = || engine.queue.enter(&key(), false, options(), &mut None);
    let told = |admission| match admission {
        Admission::Decided(Verdict::Busy(refusal)) => refusal.cooling,
        _ => false,
    };
    assert!(told(enter()), "it cools down");
    engine.queue.tell(&key(), lease.token, News::Next(a_while));
    assert!(
        matches!(enter(), Admission::Queued(_)),
        "another owner may have the key"
    );
}

#[test]
fn a_release_that_its_owner_waits_for_is_known_and_not_stepped_over() {
    let engine = engine();
    let lease = held(&engine, 1);
    lease.close();
    let contender = contender(&engine);
    assert_eq!(names(&engine, &contender, &another(&engine)), None);
    assert!(is_known(&engine, &lease));
    engine.queue.leave(&lease, ReleaseState::Nothing);
    drop(contender);
    assert!(engine.queue.is_empty());
}

/// The owner has closed its lease, and waits for the answer to the release.
#[test]
fn a_newcomer_passes_no_task_in_line_while_the_owner_waits_for_its_release() {
    let engine = engine();
    let lease = held(&engine, 1);
    let enter = || match engine.queue.enter(&key(), true, options(), &mut None) {
        Admission::Queued(place) => place,
        Admission::Decided(_) => panic!("others come first"),
    };
    let mut context = Context::from_waker(Waker::noop());
    let mut first = enter();
    lease.close();
    let mut newcomer = enter();
    assert!(newcomer.poll_verdict(&mut context).is_pending());
    let first = first.poll_verdict(&mut context);
    assert!(matches!(first, Poll::Ready(Verdict::Contend(_))));
}

#[cfg(feature = "test-util")]
#[test]
fn a_cooldown_under_way_is_known_and_not_stepped_over() {
    let locks = LockManager::in_memory();
    let engine = Arc::clone(locks.engine());
    let lease = held(&engine, 1);
    // Or the keeper might have done it by the time it is asked about.
    locks.test_store().expect("an embedded store").hang();
    lease.set_cooldown(Duration::from_secs(60));
    lease.close();
    engine.release_later(&lease);
    assert!(is_known(&engine, &lease));
    let contender = contender(&engine);
    assert_eq!(names(&engine, &contender, &another(&engine)), None);
}

#[test]
fn a_lost_lease_is_known_until_its_owner_has_ended() {
    let engine = engine();
    let lease = held(&engine, 1);
    engine.queue.abandon(&lease);
    assert!(is_known(&engine, &lease));
    engine.discard(&lease, crate::lease::Loss::NotOurs);
    assert!(!is_known(&engine, &lease));
    // The keeper may find out about the loss later than the owner has ended.
    engine.queue.abandon(&lease);
    assert!(engine.queue.is_empty());
}

/// The answer to an open question may be a refusal that is later than the hand-over.
#[test]
fn a_waiter_that_is_given_the_key_asks_once_more_only_if_its_question_is_open() {
    for is_open in [true, false] {
        let engine = engine();
        let contender = contender(&engine);
        let lease = asked_for(&engine, &contender);
        if !is_open {
            contender.waits(engine.now() + Duration::from_secs(60));
        }
        assert!(is_known(&engine, &lease));
        let news = contender.poll_news(&mut Context::from_waker(Waker::noop()));
        match is_open {
            true => assert!(matches!(news, Poll::Ready(News::Ask))),
            false => assert!(matches!(news, Poll::Ready(News::Given(_)))),
        }
    }
}

/// The releases of earlier leases may go another way.
#[test]
fn a_question_goes_behind_a_release_on_its_lane_if_no_other_release_is_under_way() {
    let engine = engine();
    let lane = Lane::KEEPER;
    let releases = |lease: &ActiveLease| {
        let release = Operation::Release(lease.release());
        assert!(engine.queue.sends_release(&release, lane));
    };
    let goes_behind = || {
        let contender = contender(&engine);
        let before = contender.asking(&another(&engine), lane, Some(lane), engine.now());
        let before = before.expect("it has the seat").expect("a release");
        before.is_on(Some(lane))
    };
    let first = held(&engine, 1);
    engine.queue.leave(&first, ReleaseState::Steppable(None));
    assert!(!goes_behind(), "the release was not sent");
    releases(&first);
    assert!(goes_behind());
    let second = another(&engine);
    engine.queue.note_unreleased(&second);
    releases(&second);
    assert!(!goes_behind(), "there are two");
}

#[test]
fn several_keys_are_asked_for_at_once_only_where_no_task_has_to_do_with_one_of_them() {
    let engine = engine();
    let [free, taken]: [Arc<str>; 2] = ["free".into(), key()];
    let asked = || {
        let all = engine.queue.contend_for_all([&free, &taken].into_iter());
        all.map(|contenders| contenders.len())
            .map_err(|occupied| (occupied.at, occupied.fact.is_some()))
    };
    assert_eq!(asked(), Ok(2));
    let asking = contender(&engine);
    assert_eq!(asked(), Err((1, false)));
    drop(asking);
    let lease = held(&engine, 1);
    assert_eq!(asked(), Err((1, true)));
    engine.queue.leave(&lease, ReleaseState::Steppable(None));
    assert_eq!(asked(), Ok(2), "only a release is under way");
}
