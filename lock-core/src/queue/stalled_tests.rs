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
use crate::queue::handoff::Successor;
use crate::queue::{Admission, LeaseReturns};

/// The questions that the queue has undone.
#[derive(Default)]
struct Undone(Mutex<Vec<Token>>);

impl LeaseReturns for Arc<Undone> {
    fn undo(&self, lease: &Arc<ActiveLease>, _: Lane, _: bool) {
        lock(&self.0).push(lease.token);
    }

    fn give_back(&self, _: &Arc<ActiveLease>) {}
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
