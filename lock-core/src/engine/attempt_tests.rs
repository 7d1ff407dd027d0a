//! A question that is sent while another thread drains the manager.

use std::future::{pending, poll_fn, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::sleep;
use std::time::Duration;

use super::{Asked, Attempt};
use crate::base::error::Error;
use crate::base::settings::Settings;
use crate::engine::Engine;
use crate::lease::LeaseOptions;
use crate::queue::{Admission, Verdict};
use crate::store::{BoxFuture, Ended, Events, Failure, Lane, Operation, Outcome, Queueing, Store};

/// A store in which a drain comes between the caller's last look and the sending of its question.
#[derive(Debug, Default)]
struct Overtaken {
    engine: OnceLock<Weak<Engine>>,
    releases: AtomicUsize,
    /// The open tasks when the drain's own release was answered.
    open: AtomicUsize,
}

impl Overtaken {
    fn drain(&self) {
        let engine = self.engine.get().and_then(Weak::upgrade);
        let engine = engine.expect("a manager");
        engine.queue.drain(&Error::draining());
        while self.releases.load(Ordering::SeqCst) == 0 {
            sleep(Duration::from_millis(1));
        }
        // The keeper counts the release as done.
        sleep(Duration::from_millis(50));
        self.open.store(engine.keeper.load().1, Ordering::SeqCst);
    }
}

impl Store for Overtaken {
    fn execute(&self, operation: Operation, _: Lane) -> BoxFuture<'_, Outcome> {
        if let Operation::Acquire(_) = operation {
            return Box::pin(poll_fn(|_| {
                self.drain();
                Poll::Pending
            }));
        }
        self.releases.fetch_add(1, Ordering::SeqCst);
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

#[test]
fn a_drain_waits_until_a_question_that_it_overtook_is_undone_behind() {
    let store = Arc::new(Overtaken::default());
    let of_engine = Arc::clone(&store);
    let engine = Engine::start(Settings::default(), None, |_, _| of_engine);
    let engine = engine.expect("a manager");
    store.engine.set(Arc::downgrade(&engine)).expect("once");
    let key: Arc<str> = "k".into();
    let options = LeaseOptions::new(Duration::from_secs(60), true, None);
    let Admission::Decided(Verdict::Contend(contender)) =
        engine.queue.enter(&key, false, options, &mut None)
    else {
        panic!("the seat is taken");
    };
    let mut attempt = Attempt::with(&engine, &key, options);
    {
        let asked = attempt.ask(&contender, Queueing::Never, Duration::from_secs(5));
        let mut asked = Box::pin(asked);
        let polled = asked.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Asked::Displaced)));
    }
    assert_eq!(store.open.load(Ordering::SeqCst), 1, "the drain waits");
    drop(attempt);
    while engine.keeper.load().1 > 0 {
        sleep(Duration::from_millis(1));
    }
    assert_eq!(
        store.releases.load(Ordering::SeqCst),
        2,
        "one of them behind"
    );
}
