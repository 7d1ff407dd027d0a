//! The embedded store: locks within one process, by the rules of the other stores.
//!
//! It has leases that run out, fencing tokens, cooldowns and a queue of waiters, so that code that is tested on
//! it behaves the same on Redis.

mod operator;
#[cfg(test)]
mod operator_tests;
mod records;
#[cfg(test)]
mod records_tests;
mod several;
mod shares;
mod state;
#[cfg(test)]
mod state_tests;
mod vote;
mod vote_shares;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, Weak};
#[cfg(feature = "test-util")]
use std::time::Duration;

#[cfg(feature = "test-util")]
use self::state::Owner;
use self::state::{MemoryState, Wake};
use super::{BoxFuture, Events, Failure, Lane, Operation, Outcome, Place, Store};
use crate::base::clock::{Clock, ServerTime};
use crate::base::error::Error;
use crate::base::sync::lock;
use crate::base::token::Address;

/// A store of one manager (`memory:`), or one that the process shares by name (`memory:name`).
pub(crate) struct MemoryStore {
    clock: Clock,
    state: Mutex<MemoryState>,
    /// Set by a test: the store answers no operation.
    #[cfg(feature = "test-util")]
    hung: tokio::sync::watch::Sender<bool>,
}

impl MemoryStore {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            state: Mutex::default(),
            #[cfg(feature = "test-util")]
            hung: tokio::sync::watch::Sender::new(false),
        })
    }

    /// Returns the process's store of that name, which lives as long as a manager uses it.
    ///
    /// # Errors
    ///
    /// `Invalid` if the store has another clock. Its leases would end at other times than their owners believe.
    pub(crate) fn named(name: &str, clock: &Clock) -> Result<Arc<Self>, Error> {
        static NAMED: LazyLock<Mutex<HashMap<String, Weak<MemoryStore>>>> =
            LazyLock::new(Mutex::default);
        let mut named = lock(&NAMED);
        if let Some(store) = named.get(name).and_then(Weak::upgrade) {
            if store.clock.is(clock) {
                return Ok(store);
            }
            return Err(Error::invalid(
                "another manager of this process uses the embedded store of this name with another clock; give all \
                 managers of the store clones of one `ManualClock`, or give each test a name of its own, as in \
                 `memory:nightly-test`",
            ));
        }
        named.retain(|_, store| store.strong_count() > 0);
        let store = Self::new(clock.clone());
        named.insert(name.to_owned(), Arc::downgrade(&store));
        Ok(store)
    }

    fn run(&self, operation: Operation) -> Outcome {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        if let Some(fault) = &state.fault {
            return Outcome::Failed(fault.clone());
        }
        let unix = self.clock.unix_micros();
        let (outcome, wake) = match operation {
            Operation::Acquire(acquire) if acquire.token.share().is_some() => {
                let (outcome, told) = state.acquire_share(&acquire, now, unix);
                drop(state);
                told.into_iter().for_each(|wake| tell(Some(wake)));
                return outcome;
            }
            Operation::Release(ref release) | Operation::Leave(ref release)
                if state.is_beside_shares(release, now) =>
            {
                let leaves = matches!(operation, Operation::Leave(_));
                let (outcome, told) = state.end_share(release, leaves, now, unix);
                drop(state);
                told.into_iter().for_each(|wake| tell(Some(wake)));
                return outcome;
            }
            Operation::Acquire(acquire) => state.acquire(&acquire, now, unix),
            Operation::AcquireAll(all) => {
                let outcome = state.acquire_all(&all, now, unix);
                (outcome, None)
            }
            Operation::Raise(raise) => {
                state.raise(Some(raise.fence));
                (Outcome::Raised, None)
            }
            Operation::Extend(extensions) => {
                let extended = extensions.iter().map(|one| state.extend(one, now));
                (Outcome::Extended(extended.collect()), None)
            }
            Operation::Release(release) => state.release(&release, now),
            Operation::Vacate(release) => state.vacate(&release, now),
            Operation::Leave(release) => state.leave(&release, now),
            Operation::Cool(release, cooldown) => {
                let left = cooldown.left_at(ServerTime(self.clock.unix_micros()));
                state.cool(&release, left, now)
            }
            Operation::Remember(release, record) => {
                let (outcome, told) = state.remember(&release, &record, now);
                drop(state);
                told.into_iter().for_each(|wake| tell(Some(wake)));
                return outcome;
            }
            Operation::Forget(key) => (state.forget(&key, now), None),
            Operation::Clock(_) => (Outcome::Clock(ServerTime(unix)), None),
            Operation::Swap(swap) => (Outcome::Swapped(state.swap(&swap, now)), None),
            Operation::Vote(vote) => state.vote(vote, now, unix),
            Operation::Operator(operation) => {
                let (outcome, told) = state.operate(operation, now, unix);
                drop(state);
                told.into_iter().for_each(|wake| tell(Some(wake)));
                return outcome;
            }
        };
        drop(state);
        tell(wake);
        outcome
    }
}

fn tell(wake: Wake) {
    if let Some((events, event)) = wake {
        events.notify(event);
    }
}

impl Store for MemoryStore {
    fn execute(&self, operation: Operation, _: Lane) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            // No operation here ever waits: without this a loop over a free lock starves its runtime.
            tokio::task::coop::consume_budget().await;
            #[cfg(feature = "test-util")]
            self.answers_again().await;
            self.run(operation)
        })
    }

    fn place(&self, _: &[Arc<str>]) -> Place {
        Place::Together
    }

    fn background(self: Arc<Self>, events: Events) -> BoxFuture<'static, ()> {
        let listening = Listening::new(self, events);
        Box::pin(async move {
            let _listening = listening;
            std::future::pending().await
        })
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            #[cfg(feature = "test-util")]
            self.answers_again().await;
            lock(&self.state).fault.clone().map_or(Ok(()), Err)
        })
    }
}

/// A manager's entry among the listeners, for as long as its keeper runs.
struct Listening {
    store: Arc<MemoryStore>,
    manager: Address,
}

impl Listening {
    fn new(store: Arc<MemoryStore>, events: Events) -> Self {
        let manager = events.manager;
        lock(&store.state).listeners.insert(manager, events);
        Self { store, manager }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        lock(&self.store.state).listeners.remove(&self.manager);
    }
}

/// Faults that a test causes.
#[cfg(feature = "test-util")]
impl MemoryStore {
    pub(crate) fn seize(&self, key: &str, ttl: Duration) {
        let now = self.clock.now();
        let key = key.into();
        let mut state = lock(&self.state);
        let change = change(&state, &key, now);
        state.set(&key, Owner::Stranger, now + ttl);
        drop(state);
        tell(change);
    }

    pub(crate) fn delete(&self, key: &str) -> bool {
        let now = self.clock.now();
        let key = key.into();
        let mut state = lock(&self.state);
        let change = change(&state, &key, now);
        let (existed, wake) = state.delete(&key, now);
        drop(state);
        tell(change);
        tell(wake);
        existed
    }

    pub(crate) fn set_fault(&self, fault: Option<Failure>) {
        lock(&self.state).fault = fault;
    }

    pub(crate) fn set_hung(&self, hung: bool) {
        self.hung.send_replace(hung);
    }

    async fn answers_again(&self) {
        if *self.hung.borrow() {
            let mut hung = self.hung.subscribe();
            let _ = hung.wait_for(|hung| !hung).await;
        }
    }

    /// Counts the keys that are taken, and the waiters in the queues.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let now = self.clock.now();
        let state = lock(&self.state);
        let taken = |entry: &&state::StoredKey| {
            entry.expires > now && !matches!(entry.owner, Owner::Promised(_))
        };
        let waiting = state.queues.values().map(|queue| queue.len()).sum();
        (state.keys.values().filter(taken).count(), waiting)
    }
}

/// The event that tells the owner of a key that another client changes it.
#[cfg(feature = "test-util")]
fn change(state: &MemoryState, key: &Arc<str>, now: crate::base::clock::Moment) -> Wake {
    let (Owner::Lease(token), _) = state.live(key, now)? else {
        return None;
    };
    let events = state.listeners.get(&token.address())?;
    Some((events.clone(), super::Event::Changed(Arc::clone(key))))
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}
