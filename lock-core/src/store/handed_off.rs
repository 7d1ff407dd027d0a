//! Keys that were handed off to a waiter whose process may be stopped.
//!
//! A dead waiter receives no push, and the release script hands the key to the next one. A stopped process
//! receives the push but does not act, and costs its grant. When the grant is over the key is free, and the
//! waiters behind it have been told nothing. So the process that handed the key off checks again when the grant
//! must be over, and hands a free key to the next waiter. So each stopped process costs its grant only. While a
//! key goes from process to process, each check is put off by the next release, and a release that finds no
//! waiter notes nothing.
//!
//! If the releaser is gone as well, the release script has told the next two waiters to ask when the grant
//! ends, where the new owner has asked more than a second ago. (Telling them always would cost each hand-over
//! of a busy lock two pushes, and two processes that wake in vain.) Otherwise, and if these two are stopped
//! too, the waiters ask when the lease that they were refused for would have ended, after 30 s at most.
//!
//! The same check serves waiters that the server refused to serve at the release, because a right or a setting
//! was missing. It is repeated until the server serves them, or each has asked by itself. On a node of a quorum it
//! notifies them only, because a node hands no key over.
//!
//! A key that was handed off a moment ago is contended: an acquire whose caller waits is queued at once, in one
//! trip instead of two.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use crate::base::clock::{Clock, Moment};
use crate::base::machine::{HashState, sleep, timeout};
use crate::base::sync::lock;
use crate::base::token::{Address, Token, TokenSource};
use crate::lease::backoff::LONGEST;
use crate::lease::deadline::{GRANT, surely_over};
use crate::store::vote::{VoteOperation, Withdrawal};
use crate::store::{AcquireCommand, Operation, Outcome, Release};

/// The precision of checks, so that very many keys cost little.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause after a check that the server refused. It is shorter than a waiter may sleep beside a free key.
const AGAIN: Duration = Duration::from_secs(1);

pub(crate) struct HandedOff {
    clock: Clock,
    /// The token of the checks. No waiter has it, because a check takes its token out of the queue, and the
    /// lease that was given back may ask again: an acquire that too few replicas have acknowledged does.
    token: Token,
    keys: Mutex<HashMap<Arc<str>, Watched, HashState>>,
    /// Whether there are any keys, to be read without the lock.
    any: AtomicBool,
    /// Notified when the first key is added.
    some: Notify,
    /// A check on a node of a quorum only notifies the waiters. The store sets this flag when it registers the node.
    only_notifies: AtomicBool,
}

struct Watched {
    over: Moment,
    /// The time by which every waiter has asked by itself.
    until: Moment,
    release: Release,
}

impl Default for HandedOff {
    fn default() -> Self {
        let (clock, address) = (Clock::default(), Address::random());
        Self {
            token: TokenSource::new(address).fresh_at(address, clock.now()),
            clock,
            keys: Mutex::default(),
            any: AtomicBool::default(),
            some: Notify::default(),
            only_notifies: AtomicBool::default(),
        }
    }
}

impl HandedOff {
    /// Makes the checks notify the waiters only, because a node of a quorum hands no key over.
    #[cfg(feature = "redis")]
    pub(crate) fn only_notify(&self) {
        self.only_notifies.store(true, Ordering::Relaxed);
    }

    /// Notes that the release of this lease has handed its key off.
    pub(crate) fn note(&self, release: &Release) {
        // The longest grant, and the most that rounding adds.
        self.watch(release, surely_over(GRANT));
    }

    /// Notes that the lease has ended, but the server refused to serve or to notify its waiters.
    pub(crate) fn note_unserved(&self, release: &Release, after: Duration) {
        self.watch(release, after.max(AGAIN));
    }

    /// Notes that a waiter was given the key, or that its waiters may take it after a while, because an operator has freed it.
    pub(crate) fn note_key(&self, key: &Arc<str>, after: Duration) {
        let release = Release {
            key: Arc::clone(key),
            token: self.token,
            ttl: GRANT,
            fence: None,
            in_background: true,
        };
        self.watch(&release, surely_over(after.max(GRANT)));
    }

    fn watch(&self, release: &Release, after: Duration) {
        let over = self.clock.now() + after;
        let until = over + LONGEST;
        let mut keys = lock(&self.keys);
        if let Some(watched) = keys.get_mut(&release.key) {
            (watched.over, watched.until) = (over, until);
            return;
        }
        let is_first = keys.is_empty();
        let release = Release {
            token: self.token,
            ..release.clone()
        };
        let watched = Watched {
            over,
            until,
            release,
        };
        keys.insert(Arc::clone(&watched.release.key), watched);
        self.any.store(true, Ordering::Relaxed);
        drop(keys);
        if is_first {
            self.some.notify_one();
        }
    }

    /// Returns whether the key was handed off a moment ago.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.any.load(Ordering::Relaxed) && lock(&self.keys).contains_key(key)
    }

    /// Notes a refused acquire that superseded a lease of its own process, because the key went to a waiter. A
    /// caller that waits asks again by itself.
    pub(crate) fn note_refused(&self, acquire: &AcquireCommand) {
        if acquire.replaces.is_some() && !acquire.queues() {
            self.note(&acquire.undo());
        }
    }

    fn look(&self, release: Release) -> Operation {
        match self.only_notifies.load(Ordering::Relaxed) {
            true => Operation::Vote(VoteOperation::Withdraw(release, Withdrawal::Leave, None)),
            false => Operation::Leave(release),
        }
    }

    /// Plans another check after a refused one, unless every waiter has asked by itself by then.
    fn look_again(&self, refused: Watched) {
        let now = self.clock.now();
        if now < refused.until {
            let over = now + AGAIN;
            let mut keys = lock(&self.keys);
            let key = Arc::clone(&refused.release.key);
            keys.entry(key).or_insert(Watched { over, ..refused });
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// The keys whose grants are over; `None`: there are no keys at all.
    fn over(&self) -> Option<Vec<Watched>> {
        let now = self.clock.now();
        let mut keys = lock(&self.keys);
        if keys.is_empty() {
            return None;
        }
        let over = keys.extract_if(|_, watched| watched.over <= now);
        let over = over.map(|(_, watched)| watched).collect();
        if keys.is_empty() {
            self.any.store(false, Ordering::Relaxed);
            // There may have been very many keys.
            keys.shrink_to(16);
        }
        Some(over)
    }

    /// Checks keys that were handed off, for as long as the keeper runs. `ask` sends an operation on the keeper's lane.
    pub(crate) async fn check<F: Future<Output = Outcome>>(&self, ask: impl Fn(Operation) -> F) {
        loop {
            let Some(over) = self.over() else {
                self.some.notified().await;
                continue;
            };
            for watched in over {
                let look = ask(self.look(watched.release.clone()));
                // If the server does not answer, all waiters ask it again anyway.
                if let Ok(Outcome::Failed(_)) = timeout(GRANT, look).await {
                    self.look_again(watched);
                }
            }
            sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_checked_when_its_grant_is_over_by_a_slower_clock_too() {
        let handed_off = HandedOff::default();
        let release = Release {
            key: "k".into(),
            token: handed_off.token,
            ttl: GRANT,
            fence: None,
            in_background: true,
        };
        let begun = handed_off.clock.now();
        handed_off.note(&release);
        handed_off.note_key(&"freed".into(), Duration::ZERO);
        let keys = lock(&handed_off.keys);
        assert_eq!(keys.len(), 2);
        for watched in keys.values() {
            let slower = begun + GRANT + GRANT / 100;
            assert!(watched.over > slower, "{:?}", watched.over);
        }
    }
}
