//! Calls inside of a body: they enter its lock, or are refused at once.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use lock_core::machine::{spawn, timeout};
use lock_core::{Error, LockHandle, LockRequest, Reentrancy, Wait};

use super::name;
use super::run::{Part, awake};
use super::watched::{Terms, Watched, Work};
use crate::ledger::ledger;
use crate::world::{MILLI, SECOND};

/// A refusal that needs no answer of a server comes in this time.
const AT_ONCE: u64 = 5 * MILLI;
/// So much is added to the number of a key that nothing else uses.
const ANOTHER: usize = 10;

impl Part {
    /// Makes calls inside of `lock` for about so long.
    pub(super) async fn nests(mut self, lock: LockHandle, hold: u64) {
        let inside = Arc::new(AtomicUsize::new(0));
        match self.rng.below(5) {
            0 | 1 => {
                let one = self.enters(&lock, &inside, hold / 2);
                let other = self.enters(&lock, &inside, hold / 2);
                both(one, other).await;
            }
            2 => {
                // It may go on behind the end of this body.
                let longest = self.rng.pick(&[10, 200, 1_000]) * MILLI;
                let span = self.rng.below(longest);
                let entered = self.enters(&lock, &inside, span);
                drop(spawn(lock.scope(entered)));
                awake(hold).await;
            }
            3 => {
                self.is_refused(&lock).await;
                awake(hold).await;
            }
            _ => {
                // The first renewal is under way at about that time.
                let renews = (self.ttl / 3).saturating_sub(self.rng.below(20 * MILLI));
                let pause = match self.rng.one_in(3) && renews < 4 * SECOND {
                    true => renews,
                    false => self.rng.below(hold + 1),
                };
                awake(pause).await;
                let entered = self.enters(&lock, &inside, hold.saturating_sub(pause));
                let longest = self.rng.below(2 * hold + 1);
                let _ = timeout(Duration::from_nanos(longest), entered).await;
            }
        }
    }

    fn again(&self, ttl: u64, wait: Wait) -> LockRequest {
        let request = self.terms.locks.lock(name(self.key));
        request.ttl(Duration::from_nanos(ttl)).wait(wait)
    }

    /// A nested body, which waits for its turn.
    fn enters(&mut self, lock: &LockHandle, inside: &Arc<AtomicUsize>, span: u64) -> Work {
        let wait = self.rng.pick(&[0, 100, 2_000]);
        // From then on the lock has the longer of the two ttls.
        let ttl = self.ttl * self.rng.pick(&[1, 1, 1, 3]);
        let request = self.again(ttl, Wait::For(Duration::from_millis(wait)));
        let entering = Entering {
            terms: self.terms.clone(),
            task: self.task,
            key: self.key,
            ttl,
            token: u64::from(lock.fencing_token()),
            inside: Arc::clone(inside),
        };
        let run = request.run_with(move |lock| entering.body(lock, span));
        Box::pin(async move { drop(run.await) })
    }

    /// Makes a call that would wait for itself.
    async fn is_refused(&mut self, lock: &LockHandle) {
        let all = [name(self.key), name(self.key + ANOTHER)];
        let all = self.terms.locks.lock_all(all).wait(Wait::Forever);
        let request = self.again(self.ttl, Wait::For(Duration::from_secs(1)));
        let refused: Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> =
            match self.rng.below(4) {
                0 => Box::pin(async move { request.acquire().await.map(drop) }),
                1 => Box::pin(request.reentrant(Reentrancy::Refuse).run(async {})),
                2 => Box::pin(async move { all.acquire().await.map(drop) }),
                _ => Box::pin(all.run(async {})),
            };
        let answer = timeout(Duration::from_nanos(AT_ONCE), refused).await;
        let is_invalid = matches!(&answer, Ok(Err(error)) if error.is_invalid());
        if !is_invalid && lock.is_valid() {
            let call = self.terms.call;
            ledger(|it| it.violates("a call waits for itself", it.calls[call].to_string()));
        }
    }
}

/// A call for a lock that the caller is inside of.
struct Entering {
    terms: Terms,
    task: usize,
    key: usize,
    ttl: u64,
    token: u64,
    inside: Arc<AtomicUsize>,
}

impl Entering {
    fn body(self, lock: LockHandle, span: u64) -> Watched {
        if u64::from(lock.fencing_token()) != self.token {
            // The lock around it has ended, and this is another one.
            return self.owner(lock, span);
        }
        ledger(|it| it.is_entered_with(self.terms.call, self.ttl));
        let terms = Terms {
            is_nested: true,
            ignores_loss: false,
            max_hold: None,
            ..self.terms
        };
        let work = alone(self.inside, terms.call, span);
        Watched::new(terms, lock, Box::pin(work))
    }

    fn owner(self, lock: LockHandle, span: u64) -> Watched {
        let call = ledger(|it| it.grants(self.terms.process, self.task, self.key, self.ttl));
        let terms = Terms {
            call,
            ignores_loss: false,
            max_hold: None,
            ..self.terms
        };
        Watched::new(terms, lock, Box::pin(awake(span)))
    }
}

/// Works inside a lock, where one body works at a time.
async fn alone(inside: Arc<AtomicUsize>, call: usize, span: u64) {
    let inside = Counted::new(inside);
    if inside.count() > 1 {
        ledger(|it| it.violates("two nested bodies work at once", it.calls[call].to_string()));
    }
    awake(span).await;
}

/// Counts a body until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(bodies: Arc<AtomicUsize>) -> Self {
        bodies.fetch_add(1, Ordering::Relaxed);
        Self(bodies)
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Awaits two futures at once.
async fn both(one: Work, other: Work) {
    let mut works = [Some(one), Some(other)];
    poll_fn(|context| {
        for work in &mut works {
            if let Some(running) = work
                && running.as_mut().poll(context).is_ready()
            {
                *work = None;
            }
        }
        match works.iter().all(Option::is_none) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}
