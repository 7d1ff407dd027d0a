//! A ticket that is not picked up, and a swap that is sent twice.

use std::future::{pending, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::active::ActiveLease;
use crate::base::fence::FencingToken;
use crate::base::settings::Settings;
use crate::base::sync::lock;
use crate::base::token::Token;
use crate::engine::Engine;
use crate::lease::LeaseOptions;
use crate::queue::{Admission, Verdict};
use crate::store::{BoxFuture, Ended, Events, Failure, Lane, Operation, Outcome, Store};

/// A store that replaces each token, and notes for which leases it was asked to serve the next waiter, and when.
#[derive(Debug, Default)]
struct Swapping {
    looks: Mutex<Vec<(Token, Instant)>>,
    released: Mutex<Vec<Token>>,
    /// Whether the store answers the second send of a swap, after other shares have joined the new one.
    is_joined: bool,
}

impl Store for Swapping {
    fn execute(&self, operation: Operation, _: Lane) -> BoxFuture<'_, Outcome> {
        if let Operation::Swap(_) = operation {
            return Box::pin(ready(match self.is_joined {
                true => Outcome::Swapped(Ended::Other).of_the_last_send(),
                false => Outcome::Swapped(Ended::Yes),
            }));
        }
        if let Operation::Release(release) = &operation {
            lock(&self.released).push(release.token);
        }
        if let Operation::Leave(release) = operation {
            lock(&self.looks).push((release.token, Instant::now()));
        }
        Box::pin(ready(Outcome::Released(Ended::Absent)))
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

/// Holds a lock.
fn held(engine: &Arc<Engine>) -> Arc<ActiveLease> {
    let key: Arc<str> = "k".into();
    let options = LeaseOptions::new(Duration::from_secs(60), true, None);
    let Admission::Decided(Verdict::Contend(contender)) =
        engine.queue.enter(&key, false, options, &mut None)
    else {
        panic!("the seat is taken");
    };
    let now = engine.now();
    let token = engine.tokens.fresh_at(engine.tokens.manager(), now);
    let lease = ActiveLease::new(&key, token, options, engine.timers.clock());
    let before = contender.asking(&lease, Lane::KEEPER, None, now);
    assert!(before.is_ok(), "it has the seat");
    lease.ask(now + Duration::from_secs(5));
    assert!(lease.grant(now, FencingToken::new(1).expect("a token")));
    assert!(contender.granted(&lease));
    lease
}

/// Holds a lock, and passes it on by a ticket with this time to pick it up.
fn hand_out(engine: &Arc<Engine>, pick_up: Duration) -> Token {
    let lease = held(engine);
    let mut made = Box::pin(engine.hand_out(&lease, pick_up));
    let made = made.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(made, Poll::Ready(Ok(_))));
    lease.token
}

#[test]
fn the_key_is_looked_at_when_the_time_to_pick_a_ticket_up_is_over() {
    let store = Arc::new(Swapping::default());
    let of_engine = Arc::clone(&store);
    let engine = Engine::start(Settings::default(), None, |_, _| of_engine);
    let engine = engine.expect("a manager");
    let pick_up = Duration::from_millis(50);
    let begun = Instant::now();
    let token = hand_out(&engine, pick_up);
    let looked = soon(|| lock(&store.looks).first().copied());
    assert_eq!(looked.0, token);
    assert!(looked.1 - begun > pick_up, "not before");
}

/// Without the release, the share would keep writers out until its ttl is over.
#[test]
fn a_downgrade_that_may_have_made_a_share_gives_both_tokens_back() {
    let store = Arc::new(Swapping {
        is_joined: true,
        ..Swapping::default()
    });
    let of_engine = Arc::clone(&store);
    let engine = Engine::start(Settings::default(), None, |_, _| of_engine);
    let engine = engine.expect("a manager");
    let lease = held(&engine);
    let mut downgraded = Box::pin(engine.downgrade(&lease));
    let downgraded = downgraded
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Err(error)) = downgraded else {
        panic!("it is answered, and not granted");
    };
    assert!(error.is_unavailable(), "{error}");
    let released = soon(|| Some(lock(&store.released).clone()).filter(|all| all.len() > 1));
    assert_eq!(released[0], lease.token);
    assert!(released[1].share().is_some());
}

fn soon<T>(look: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing is seen");
        sleep(Duration::from_millis(1));
    }
}
