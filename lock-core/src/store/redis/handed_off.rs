//! Keys that were given to a waiter, and whether that one is alive.
//!
//! A process that was stopped receives what is pushed to it, and does not come. When its grant is over
//! the key is free, and all who wait behind it were told nothing. So whoever has given a key away looks
//! once more when the grant must be over, and gives a key that is free to the next: however many
//! processes are stopped before a waiter, each costs its grant. While a key goes on from process to
//! process, each look is put off by the next release.
//!
//! The same look serves waiters that the server refused to serve when the lock was released, because a right or a
//! setting was missing at that moment. It is repeated until the server serves them, or each has asked by itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::RedisStore;
use crate::base::clock::{Clock, Moment};
use crate::base::sync::lock;
use crate::lease::backoff::LONGEST;
use crate::lease::deadline::GRANT;
use crate::store::{Acquire, Lane, Operation, Outcome, Release};

/// Looks are no more precise than that, so that very many keys cost little.
const PAUSE: Duration = Duration::from_millis(100);
/// Until the next look after one that the server refused: less than a waiter may sleep beside a free key.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Given {
    clock: Clock,
    keys: Mutex<HashMap<Arc<str>, Watched>>,
    /// Whether there are any, for a look without the lock.
    any: AtomicBool,
    /// There is a first one.
    some: Notify,
}

struct Watched {
    over: Moment,
    /// Every waiter has asked by itself by then.
    until: Moment,
    release: Release,
}

impl Given {
    /// The release of this lease has given its key away.
    pub(super) fn note(&self, release: &Release) {
        // The longest grant, and what rounding may cost.
        self.watch(release, GRANT + Duration::from_millis(1));
    }

    /// The lease has ended, and the server refused to serve or to tell its waiters, who may have the key after
    /// that time.
    pub(super) fn note_unserved(&self, release: &Release, after: Duration) {
        self.watch(release, after.max(AGAIN));
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
        let release = release.clone();
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

    /// Whether the key was given away a moment ago.
    pub(super) fn has(&self, key: &str) -> bool {
        self.any.load(Ordering::Relaxed) && lock(&self.keys).contains_key(key)
    }

    /// This acquire was refused, though it stepped over a lease of its own process: somebody was
    /// given the key. Who waits itself asks again by itself.
    pub(super) fn note_refused(&self, acquire: &Acquire) {
        if acquire.replaces.is_some() && !acquire.queues() {
            self.note(&Release {
                key: Arc::clone(&acquire.key),
                token: acquire.token,
                ttl: acquire.ttl,
                fence: None,
                in_background: true,
            });
        }
    }

    /// A look was refused: there is another, unless every waiter has asked by itself by then.
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

    /// Those whose grants are over by now; `None` if there are none at all.
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
            // There may have been very many.
            keys.shrink_to(16);
        }
        Some(over)
    }
}

impl RedisStore {
    /// Looks after keys that were given away, for ever.
    pub(super) async fn look_after_given(&self) {
        loop {
            let Some(over) = self.given.over() else {
                self.given.some.notified().await;
                continue;
            };
            for watched in over {
                let look = self.ask(Operation::Leave(watched.release.clone()), Lane::KEEPER);
                // A server that does not answer has other troubles: all who wait ask it again.
                if let Ok(Outcome::Failed(_)) = timeout(GRANT, look).await {
                    self.given.look_again(watched);
                }
            }
            sleep(PAUSE).await;
        }
    }
}
