//! A waiter whose earlier question may still arrive.

use std::future::{pending, ready};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::base::clock::Clock;
use crate::base::settings::Settings;
use crate::base::sync::lock;
use crate::lease::{LeaseOptions, Refusal};
use crate::store::{BoxFuture, Events, Failure, Lane, Operation, Outcome, Released, Store};
use crate::test_util::ManualClock;

/// A store that refuses each question for a minute, and has sent the first of them twice, if it says so.
#[derive(Debug)]
struct Refusing {
    repeats: bool,
    clock: ManualClock,
    asked: Mutex<Vec<Moment>>,
}

impl Store for Refusing {
    fn execute(&self, operation: Operation, _: Lane) -> BoxFuture<'_, Outcome> {
        if !matches!(operation, Operation::Acquire(_)) {
            return Box::pin(ready(Outcome::Released(Released::Absent)));
        }
        let mut asked = lock(&self.asked);
        asked.push(self.clock.now());
        let refused = Outcome::Busy(Refusal {
            cooling: false,
            record: None,
            remaining: Some(Duration::from_secs(60)),
            queued: true,
            pushed: true,
            shared: false,
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

/// The times of the questions of a waiter in half a minute.
fn questions(repeats: bool) -> Vec<Duration> {
    let clock = ManualClock::new();
    let begun = clock.now();
    let store = Arc::new(Refusing {
        repeats,
        clock: clock.clone(),
        asked: Mutex::default(),
    });
    let of_engine = Arc::clone(&store);
    let settings = Settings {
        clock: Clock::Manual(clock.clone()),
        ..Settings::default()
    };
    let engine = Engine::start(settings, None, |_, _| of_engine).expect("a manager");
    let spec = LockSpec {
        engine,
        key: "k".into(),
        others: Vec::new(),
        share: None,
        options: LeaseOptions::new(Duration::from_secs(10), true, None),
        wait: Wait::Forever,
        cooldown: Duration::ZERO,
        acquire_timeout: Duration::from_secs(1),
    };
    let mut taken = Box::pin(take_one(&spec));
    for _ in 0..59 {
        let polled = taken.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending));
        clock.advance(Duration::from_millis(500));
    }
    let asked = lock(&store.asked);
    asked.iter().map(|at| at.since(begun)).collect()
}

#[test]
fn a_waiter_asks_once_more_when_an_earlier_question_must_have_arrived() {
    assert_eq!(questions(false), [Duration::ZERO]);
    assert_eq!(questions(true), [Duration::ZERO, Duration::from_secs(6)]);
}
