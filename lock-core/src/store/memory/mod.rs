//! The embedded store: locks within one process, by the rules of the other stores.
//!
//! It is a map of documents behind a mutex. Each operation is a step of the [`protocol`](crate::protocol), which the
//! scripts follow on Redis. So code that is tested on this store behaves the same there.

#[cfg(feature = "test-util")]
mod commanded;
mod operator;
#[cfg(test)]
mod operator_tests;
mod records;
#[cfg(test)]
mod records_tests;
mod run;
mod state;
#[cfg(test)]
mod state_tests;
mod vote;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};
#[cfg(feature = "test-util")]
use std::time::Duration;

use self::state::MemoryState;
use super::{BoxFuture, Cooldown, Events, Failure, Lane, Operation, Outcome, Place, Store};
use crate::base::clock::{Clock, ServerTime};
use crate::base::error::Error;
use crate::base::sync::lock;
use crate::base::token::Address;

/// A store of one manager (`memory:`), or one that the process shares by name (`memory:name`).
pub(crate) struct MemoryStore {
    clock: Clock,
    /// The Unix time in microseconds at moment 0 of the clock, as the store was created.
    began: u64,
    state: Mutex<MemoryState>,
    /// Set by a test: the store answers no operation.
    #[cfg(feature = "test-util")]
    hung: tokio::sync::watch::Sender<bool>,
}

impl MemoryStore {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            began: clock.unix_micros().wrapping_sub(clock.now().0 / 1000),
            clock,
            state: Mutex::default(),
            #[cfg(feature = "test-util")]
            hung: tokio::sync::watch::Sender::new(false),
        })
    }

    /// The time of the store, by which leases end and fencing tokens count.
    ///
    /// It is a Unix time that goes on by the clock of the managers. So no lease ends too early or too late when the wall
    /// clock is set.
    fn now(&self) -> ServerTime {
        ServerTime(self.began.wrapping_add(self.clock.now().0 / 1000))
    }

    fn wall_clock(&self) -> ServerTime {
        ServerTime(self.clock.unix_micros())
    }

    /// Returns the time of the store in milliseconds at such a time of the wall clock, and never an earlier one.
    /// 0 has always passed.
    fn at_wall_clock(&self, millis: u64, now: ServerTime) -> u64 {
        let left = millis
            .saturating_mul(1000)
            .saturating_sub(self.wall_clock().0);
        match left {
            0 => 0,
            left => now.0.saturating_add(left).div_ceil(1000),
        }
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
        let mut state = lock(&self.state);
        if let Some(fault) = &state.fault {
            return Outcome::Failed(fault.clone());
        }
        // The clock is read under the lock, so no operation runs at an earlier time than the one before it.
        let outcome = match operation {
            // Ticks count by the wall clock.
            Operation::Clock(_) => Outcome::Clock(self.wall_clock()),
            Operation::Cool(release, cooldown) => {
                let now = self.now();
                let until_millis = self.at_wall_clock(cooldown.until_millis, now);
                let cooldown = Cooldown {
                    until_millis,
                    ..cooldown
                };
                state.run(Operation::Cool(release, cooldown), now)
            }
            operation => state.run(operation, self.now()),
        };
        report(state);
        outcome
    }
}

/// Reports the events of an operation. The lock is released first.
fn report(mut state: MutexGuard<'_, MemoryState>) {
    let messages = std::mem::take(&mut state.messages);
    drop(state);
    for (events, event) in messages {
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
        let mut state = lock(&self.state);
        state.seize(&key.into(), ttl, self.now());
        report(state);
    }

    pub(crate) fn delete(&self, key: &str) -> bool {
        let mut state = lock(&self.state);
        let existed = state.delete(&key.into(), self.now());
        report(state);
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
        lock(&self.state).counts(self.now())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}
