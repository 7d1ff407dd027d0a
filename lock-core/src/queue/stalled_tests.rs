//! Futures that are left alone. The test is the keeper: no thread looks at the queue.

use std::sync::Mutex;
use std::task::Poll;

use super::*;
use crate::base::clock::Clock;
use crate::base::fence::FencingToken;
use crate::base::manual_clock::ManualClock;
use crate::base::share::ShareLimit;
use crate::base::token::{Address, Token, TokenSource};
use crate::keeper::Keeper;
use crate::lease::LeaseOptions;
use crate::queue::handoff::{Handoff, Successor};
use crate::queue::{Admission, LeaseReturns, PlaceInLine};
use crate::store::News;

/// The questions that the queue has undone, and the leases that it has given back.
#[derive(Default)]
struct Undone(Mutex<Vec<Token>>, Mutex<Vec<Token>>);

impl LeaseReturns for Arc<Undone> {
    fn undo(&self, lease: &Arc<ActiveLease>, _: Lane, _: bool) {
        lock(&self.0).push(lease.token);
    }

    fn give_back(&self, lease: &Arc<ActiveLease>) {
        lock(&self.1).push(lease.token);
    }
}

struct Scene {
    clock: ManualClock,
    queue: Arc<Queue>,
    undone: Arc<Undone>,
}

impl Scene {
    fn new() -> Self {
        let clock = ManualClock::new();
        let undone = Arc::<Undone>::default();
        let timers = crate::timer::Timers::new(Clock::Manual(clock.clone()));
        let keeper = Keeper::new(timers, Duration::from_secs(5));
        Self {
            queue: Queue::new(keeper, Box::new(Arc::clone(&undone))),
            clock,
            undone,
        }
    }

    /// Lets the time pass, and makes the keeper's checks that are due then.
    fn passes(&self, span: Duration) {
        self.clock.advance(span);
        let due = self.queue.keeper.timers.take_due(self.clock.now());
        due.into_iter().for_each(Waker::wake);
    }

    fn enter(&self) -> Admission {
        self.queue.enter(&"k".into(), true, options(), &mut None)
    }

    /// A contender, and the lease of its question.
    fn asks(&self) -> (Contender, Arc<ActiveLease>) {
        let Admission::Decided(Verdict::Contend(contender)) = self.enter() else {
            panic!("the seat is taken");
        };
        let (address, now) = (Address::random(), self.clock.now());
        let token = TokenSource::new(address).fresh_at(address, now);
        let clock = self.queue.keeper.timers.clock();
        let lease = ActiveLease::new(&"k".into(), token, options(), clock);
        lease.ask(now + Duration::from_secs(5));
        assert!(contender.asking(&lease, Lane::KEEPER, None, now).is_ok());
        (contender, lease)
    }

    /// A waiter of this process that was handed a lease, and stands before this many others.
    fn handed_over(&self, others: usize) -> (Handoff, Vec<PlaceInLine>) {
        let (contender, lease) = self.asks();
        assert!(lease.grant(self.clock.now(), FencingToken::new(1).expect("a token")));
        assert!(contender.granted(&lease));
        let mut waiters: Vec<_> = (0..=others).map(|_| self.waits()).collect();
        let handed_on = self.queue.hand_on(&lease);
        assert!(matches!(handed_on, Successor::Waiter(_)));
        let verdict = waiters
            .remove(0)
            .poll_verdict(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Verdict::Handoff(handoff)) = verdict else {
            panic!("it has the lease");
        };
        (handoff, waiters)
    }

    fn waits(&self) -> PlaceInLine {
        match self.enter() {
            Admission::Queued(place) => place,
            Admission::Decided(_) => panic!("the key is held"),
        }
    }

    fn slot<T>(&self, look: impl FnOnce(&mut Slot) -> T) -> T {
        let mut slots = lock(&self.queue.slots);
        look(slots.active.get_mut("k").expect("a slot"))
    }

    /// Plans a check as if none were planned, and returns when it is due after now.
    fn planned(&self) -> Option<Duration> {
        let at = self.slot(|slot| {
            slot.next_check = None;
            slot.plan_check()
        });
        at.map(|at| at.since(self.clock.now()))
    }
}

fn options() -> LeaseOptions {
    LeaseOptions::new(Duration::from_secs(60), true, None)
}

#[test]
fn the_next_waiter_asks_when_a_release_takes_longer_than_a_moment() {
    let scene = Scene::new();
    let (contender, lease) = scene.asks();
    assert!(lease.grant(scene.clock.now(), FencingToken::new(1).expect("a token")));
    assert!(contender.granted(&lease));
    let Admission::Queued(mut waiter) = scene.enter() else {
        panic!("the key is held");
    };
    // So the lease goes back to the store.
    lease.set_cooldown(Duration::from_secs(1));
    let handed_on = scene.queue.hand_on(&lease);
    assert!(matches!(handed_on, Successor::Store(_)));
    lease.close();
    let mut asks = || {
        let verdict = waiter.poll_verdict(&mut Context::from_waker(Waker::noop()));
        matches!(verdict, Poll::Ready(Verdict::Contend(_)))
    };
    let almost = PATIENCE_WITH_UNPOLLED - Duration::from_millis(1);
    scene.passes(almost);
    assert!(!asks());
    scene.passes(PATIENCE_WITH_UNPOLLED - almost);
    assert!(asks());
}

/// Other processes may want the key, and the place of the question in the store's queue is before theirs.
#[test]
fn an_overdue_question_is_undone_if_its_future_is_not_polled_when_it_is_woken() {
    for is_polled in [true, false] {
        let scene = Scene::new();
        let (_contender, lease) = scene.asks();
        let mut waker_id = None;
        lease.wake_on_change(&mut waker_id, Waker::noop());
        scene.passes(Duration::from_secs(5));
        scene.queue.question_is_overdue(&lease);
        let begun = scene.clock.now();
        while scene.clock.now() < begun + PATIENCE_WITH_UNPOLLED + GRANT {
            assert_eq!(*lock(&scene.undone.0), [], "it has time to be polled");
            if is_polled {
                lease.wake_on_change(&mut waker_id, Waker::noop());
            }
            scene.passes(PATIENCE_WITH_UNPOLLED);
        }
        let undone = lock(&scene.undone.0);
        assert_eq!(undone.contains(&lease.token), !is_polled);
    }
}

/// Such a share has a place in no line, and other processes would wait for it as for any other one.
#[test]
fn an_overdue_question_beside_its_line_is_undone_if_its_future_is_not_polled() {
    let scene = Scene::new();
    let contender = scene.queue.enter_own_line("k");
    let (address, now) = (Address::random(), scene.clock.now());
    let token = TokenSource::new(address).fresh_at(address, now);
    let token = token.with_share(Some(ShareLimit::READERS));
    let clock = scene.queue.keeper.timers.clock();
    let lease = ActiveLease::new(&"k".into(), token, options(), clock);
    lease.ask(now + Duration::from_secs(5));
    assert!(contender.asking(&lease, Lane::KEEPER, None, now).is_ok());
    scene.passes(Duration::from_secs(5));
    scene.queue.question_is_overdue(&lease);
    for _ in 0..GRANT.as_millis() / PATIENCE_WITH_UNPOLLED.as_millis() + 2 {
        scene.passes(PATIENCE_WITH_UNPOLLED);
    }
    assert_eq!(*lock(&scene.undone.0), [token]);
}

#[test]
fn a_check_is_planned_where_others_wait_behind_a_task_that_may_not_be_polled() {
    let scene = Scene::new();
    let (contender, lease) = scene.asks();
    assert_eq!(scene.planned(), None, "no task waits");
    let waiter = scene.waits();
    let due = scene.slot(|slot| slot.contender.as_ref().map(|contender| contender.due));
    let due = due.expect("a contender").since(scene.clock.now());
    assert_eq!(scene.planned(), Some(due + PATIENCE_WITH_UNPOLLED));
    // Only an earlier check takes the place of the planned one.
    assert_eq!(scene.slot(Slot::plan_check), None);
    let later = scene.clock.now() + due + GRANT;
    assert!(scene.slot(|slot| {
        slot.next_check = Some(later);
        slot.plan_check().is_some()
    }));
    drop((contender, waiter, lease));

    for (others, patience) in [(0, GRANT), (1, PATIENCE_WITH_UNPOLLED)] {
        let scene = Scene::new();
        let (mut handoff, waiters) = scene.handed_over(others);
        assert_eq!(scene.planned(), Some(patience));
        assert!(handoff.pick_up());
        assert_eq!(scene.planned(), None, "its owner works");
        let left = scene.clock.now();
        scene.slot(|slot| slot.left_at = Some(left));
        assert_eq!(scene.planned(), (others > 0).then_some(patience));
        drop(waiters);
    }
}

#[test]
fn a_lease_that_is_not_picked_up_for_a_moment_can_be_had() {
    let scene = Scene::new();
    let (mut handoff, _waiters) = scene.handed_over(0);
    let can_be_had = || scene.slot(|slot| slot.is_not_picked_up(scene.clock.now()));
    scene
        .clock
        .advance(PATIENCE_WITH_UNPOLLED - Duration::from_millis(1));
    assert!(!can_be_had());
    scene.clock.advance(Duration::from_millis(1));
    assert!(can_be_had());
    assert!(handoff.pick_up());
    assert!(!can_be_had());
}

#[test]
fn a_lease_is_left_when_its_owner_has_ended_a_moment_ago_and_no_body_holds_it() {
    let scene = Scene::new();
    let (mut handoff, _waiters) = scene.handed_over(0);
    assert!(handoff.pick_up());
    let left = scene.clock.now();
    scene.slot(|slot| slot.left_at = Some(left));
    let is_left = |span| scene.slot(|slot| slot.is_left(left + span));
    assert!(!is_left(Duration::ZERO));
    assert!(!is_left(PATIENCE_WITH_UNPOLLED), "a body is inside");
    handoff.lease().close();
    assert!(!is_left(PATIENCE_WITH_UNPOLLED), "it was said before");
    scene.slot(|slot| slot.left_at = Some(left));
    assert!(is_left(PATIENCE_WITH_UNPOLLED));
}

#[test]
fn a_lease_of_a_waiter_that_has_gone_is_given_back_and_that_of_a_guard_is_not() {
    for is_picked_up in [true, false] {
        let scene = Scene::new();
        let (mut handoff, _waiters) = scene.handed_over(0);
        let token = handoff.lease().token;
        assert_eq!(is_picked_up && handoff.pick_up(), is_picked_up);
        drop(handoff);
        assert_eq!(*lock(&scene.undone.1), [token]);
        assert_eq!(scene.queue.keeper.load().0, 0);

        let scene = Scene::new();
        let (mut handoff, _waiters) = scene.handed_over(0);
        assert_eq!(is_picked_up && handoff.pick_up(), is_picked_up);
        handoff.has_a_guard();
        assert_eq!(*lock(&scene.undone.1), []);
        assert_eq!(scene.queue.keeper.load().0, 0);
    }
    // Another task has taken it.
    let scene = Scene::new();
    let (handoff, _waiters) = scene.handed_over(0);
    assert!(handoff.lease().pick_up());
    drop(handoff);
    assert_eq!(*lock(&scene.undone.1), []);
}

#[test]
fn a_contender_that_waits_for_a_release_of_its_process_keeps_its_turn() {
    for pushed in [false, true] {
        let scene = Scene::new();
        let (contender, lease) = scene.asks();
        let one = ShareLimit::permits(1).expect("in bounds");
        let token = TokenSource::new(Address::random())
            .fresh()
            .with_share(Some(one));
        let clock = scene.queue.keeper.timers.clock();
        let ended = ActiveLease::new(&"k".into(), token, options(), clock);
        scene.queue.note_unreleased(&ended);
        let latest = scene.clock.now() + Duration::from_secs(5);
        let mut arrives = Box::pin(contender.lets_releases_arrive(&lease, latest));
        let context = &mut Context::from_waker(Waker::noop());
        assert!(arrives.as_mut().poll(context).is_pending());
        let mut waiter = scene.waits();
        for _ in 0..10 {
            assert!(
                waiter.poll_verdict(context).is_pending(),
                "it is not its turn"
            );
            scene.passes(2 * PATIENCE_WITH_UNPOLLED);
        }
        match pushed {
            true => assert!(scene.queue.tell(&"k".into(), lease.token, News::Ask)),
            false => scene.queue.confirm_release(&ended.release()),
        }
        assert_eq!(arrives.as_mut().poll(context), Poll::Ready(!pushed));
    }
}
