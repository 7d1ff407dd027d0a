//! Questions that the store refuses.

use std::future::{pending, ready};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::active::ActiveLease;
use crate::base::clock::Clock;
use crate::base::settings::Settings;
use crate::base::share::ShareLimit;
use crate::base::sync::lock;
use crate::base::token::{Address, TokenSource};
use crate::lease::{LeaseOptions, Refusal};
use crate::store::{BoxFuture, Ended, Events, Failure, Lane, Operation, Outcome, Store};
use crate::test_util::ManualClock;

/// A store that refuses each question for a minute, and has sent the first of them twice, if it says so.
#[derive(Debug)]
struct Refusing {
    repeats: bool,
    /// Whether shares have the key.
    shared: bool,
    clock: ManualClock,
    asked: Mutex<Vec<Moment>>,
}

impl Store for Refusing {
    fn execute(&self, operation: Operation, _: Lane) -> BoxFuture<'_, Outcome> {
        if !matches!(operation, Operation::Acquire(_)) {
            return Box::pin(ready(Outcome::Released(Ended::Absent)));
        }
        let mut asked = lock(&self.asked);
        asked.push(self.clock.now());
        let refused = Outcome::Busy(Refusal {
            cooling: false,
            record: None,
            remaining: Some(Duration::from_secs(60)),
            queued: true,
            pushed: true,
            shared: self.shared,
            full: None,
            server_time: None,
        });
        Box::pin(ready(match self.repeats && asked.len() == 1 {
            true => refused.of_the_last_send(),
            false => refused,
        }))
    }

    fn background(self: Arc<Self>, _: Events) -> BoxFuture<'static, ()> {
        Box::pin(pending())
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(ready(Ok(())))
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(ready(Ok(())))
    }
}

/// A call for a key at a store that refuses it, and the clock of both.
struct Scene {
    clock: ManualClock,
    begun: Moment,
    store: Arc<Refusing>,
    spec: LockSpec,
}

impl Scene {
    fn new(repeats: bool, shared: bool, wait: Wait) -> Self {
        let clock = ManualClock::new();
        let store = Arc::new(Refusing {
            repeats,
            shared,
            clock: clock.clone(),
            asked: Mutex::default(),
        });
        let of_engine = Arc::clone(&store);
        let settings = Settings {
            clock: Clock::Manual(clock.clone()),
            ..Settings::default()
        };
        let engine = Engine::start(settings, None, |_, _| of_engine).expect("a manager");
        Self {
            begun: clock.now(),
            clock,
            store,
            spec: LockSpec {
                engine,
                key: "k".into(),
                others: Vec::new(),
                share: None,
                options: LeaseOptions::new(Duration::from_secs(10), true, None),
                wait,
                cooldown: Duration::ZERO,
                acquire_timeout: Duration::from_secs(1),
            },
        }
    }

    /// The times of the questions.
    fn asked(&self) -> Vec<Duration> {
        let asked = lock(&self.store.asked);
        asked.iter().map(|at| at.since(self.begun)).collect()
    }
}

/// The times of the questions of a waiter in half a minute.
fn questions(repeats: bool) -> Vec<Duration> {
    let scene = Scene::new(repeats, false, Wait::Forever);
    let mut taken = Box::pin(take_one(&scene.spec));
    for _ in 0..59 {
        let polled = taken.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending));
        scene.clock.advance(Duration::from_millis(500));
    }
    scene.asked()
}

#[test]
fn a_waiter_asks_once_more_when_an_earlier_question_must_have_arrived() {
    assert_eq!(questions(false), [Duration::ZERO]);
    assert_eq!(questions(true), [Duration::ZERO, Duration::from_secs(6)]);
}

#[test]
fn a_call_waits_for_a_release_of_its_process_behind_a_push_too() {
    let scene = Scene::new(false, true, Wait::None);
    let engine = &scene.spec.engine;
    let one = ShareLimit::permits(1).expect("in bounds");
    let token = TokenSource::new(Address::random())
        .fresh()
        .with_share(Some(one));
    let share = ActiveLease::new(
        &scene.spec.key,
        token,
        scene.spec.options,
        engine.timers.clock(),
    );
    engine.queue.note_unreleased(&share);

    let mut taken = Box::pin(take_one(&scene.spec));
    let mut is_refused = || {
        let polled = taken.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        polled.is_ready()
    };
    assert!(!is_refused() && scene.asked().len() == 1);
    engine.queue.tell_all(News::Ask);
    assert!(!is_refused(), "its process still releases the share");
    assert_eq!(scene.asked().len(), 2);
    engine.queue.confirm_release(&share.release());
    assert!(is_refused());
    assert_eq!(scene.asked().len(), 3);
}
