//! The embedded store: locks within one process, with all the rules of the others.
//!
//! It has leases that run out, fencing tokens, cooldowns and a queue of waiters, so that what is
//! tested on it behaves the same on Redis.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::Duration;

use super::{
    Acquire, BoxFuture, Event, Events, Extended, Extension, Failure, Lane, Operation, Outcome,
    Refusal, Release, Released, Store,
};
use crate::clock::{Clock, Moment};
use crate::fence::FencingToken;
use crate::sync::lock;
use crate::token::{ManagerId, Token};

/// A store of its own (`memory:`), or one that the process shares by name (`memory:name`).
pub(crate) struct MemoryStore {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: HashMap<Arc<str>, Entry>,
    /// Waiting tokens by key, in the order of arrival.
    queues: HashMap<Arc<str>, VecDeque<Token>>,
    /// The highest fencing token given.
    mark: u64,
    /// The managers that use this store.
    listeners: HashMap<ManagerId, Events>,
    /// How many keys to have before looking for expired ones again.
    sweep_at: usize,
    /// Set by a test: every operation fails with it.
    fault: Option<Failure>,
}

struct Entry {
    owner: Owner,
    expires: Moment,
}

#[derive(PartialEq)]
enum Owner {
    Lease(Token),
    Cooling(Token),
    /// A test's stranger.
    #[cfg(feature = "test-util")]
    Stranger,
}

impl MemoryStore {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            state: Mutex::default(),
        })
    }

    /// The process's store of that name; it lives as long as a manager uses it.
    pub(crate) fn named(name: &str) -> Arc<Self> {
        static NAMED: LazyLock<Mutex<HashMap<String, Weak<MemoryStore>>>> =
            LazyLock::new(Mutex::default);
        let mut named = lock(&NAMED);
        if let Some(store) = named.get(name).and_then(Weak::upgrade) {
            return store;
        }
        named.retain(|_, store| store.strong_count() > 0);
        let store = Self::new(Clock::default());
        named.insert(name.to_owned(), Arc::downgrade(&store));
        store
    }

    fn run(&self, operation: Operation) -> Outcome {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        if let Some(fault) = &state.fault {
            return Outcome::Failed(fault.clone());
        }
        let (outcome, wake) = match operation {
            Operation::Acquire(acquire) => state.acquire(acquire, now, self.clock.unix_micros()),
            Operation::Extend(extensions) => {
                let extended = extensions.iter().map(|one| state.extend(one, now));
                (Outcome::Extended(extended.collect()), None)
            }
            Operation::Release(release) => state.release(&release, None, now),
            Operation::Cool(release, cooldown) => state.release(&release, Some(cooldown), now),
        };
        drop(state);
        tell(wake);
        outcome
    }
}

/// The key goes to those who waited; ask again shortly.
fn handed_on() -> Refusal {
    Refusal {
        cooling: false,
        remaining: Some(Duration::from_millis(5)),
        pushed: true,
    }
}

type Wake = Option<(Events, Event)>;

fn tell(wake: Wake) {
    if let Some((events, event)) = wake {
        events.tell(event);
    }
}

impl State {
    fn acquire(&mut self, acquire: Acquire, now: Moment, unix_micros: u64) -> (Outcome, Wake) {
        let Acquire {
            key,
            token,
            ttl,
            queue,
            replaces,
            repeated: _,
        } = acquire;
        let owner = self.live(&key, now).map(|entry| &entry.owner);
        let refusal = match owner {
            Some(Owner::Lease(owner)) if *owner == token => None,
            // Our own release is under way: done here and now. Who waited comes first.
            Some(Owner::Lease(owner)) if Some(*owner) == replaces => {
                self.keys.remove(&key);
                self.leave_queue(&key, token);
                let wake = self.first_waiter(&key);
                if wake.is_some() {
                    self.refuse(&key, token, queue);
                    return (Outcome::Busy(handed_on()), wake);
                }
                None
            }
            Some(_) => self.live(&key, now).map(|entry| Refusal {
                cooling: matches!(entry.owner, Owner::Cooling(_)),
                remaining: Some(entry.expires.since(now)),
                pushed: true,
            }),
            None => None,
        };
        if let Some(refusal) = refusal {
            self.refuse(&key, token, queue);
            return (Outcome::Busy(refusal), None);
        }
        self.sweep(now);
        self.mark = (self.mark + 1).max(unix_micros);
        let Some(fence) = FencingToken::new(self.mark) else {
            let message = "the clock is too far in the future for a fencing token";
            return (Outcome::Failed(Failure::refused(message)), None);
        };
        self.leave_queue(&key, token);
        let entry = Entry {
            owner: Owner::Lease(token),
            expires: now + ttl,
        };
        self.keys.insert(key, entry);
        (Outcome::Granted(fence), None)
    }

    /// A refused token stands in the queue, if it wants to.
    fn refuse(&mut self, key: &Arc<str>, token: Token, queue: bool) {
        if queue {
            let waiting = self.queues.entry(Arc::clone(key)).or_default();
            if !waiting.contains(&token) {
                waiting.push_back(token);
            }
        }
    }

    fn extend(&mut self, extension: &Extension, now: Moment) -> Extended {
        match self.keys.get_mut(&extension.key) {
            Some(entry) if entry.expires > now && entry.owner == Owner::Lease(extension.token) => {
                entry.expires = entry.expires.max(now + extension.ttl);
                Extended::Yes
            }
            _ => Extended::NotOurs,
        }
    }

    fn release(
        &mut self,
        release: &Release,
        cooldown: Option<Duration>,
        now: Moment,
    ) -> (Outcome, Wake) {
        let Release {
            key,
            token,
            fence: _,
        } = release;
        let released = match self.live(key, now) {
            Some(Entry {
                owner: Owner::Lease(owner),
                ..
            }) if owner == token => Released::Yes,
            Some(Entry {
                owner: Owner::Cooling(owner),
                ..
            }) if owner == token && cooldown.is_some() => Released::Yes,
            Some(_) => Released::Other,
            None => Released::Absent,
        };
        if released == Released::Yes {
            match cooldown {
                Some(cooldown) => {
                    self.keys.insert(
                        Arc::clone(key),
                        Entry {
                            owner: Owner::Cooling(*token),
                            expires: now + cooldown,
                        },
                    );
                }
                None => {
                    self.keys.remove(key);
                }
            }
        }
        self.leave_queue(key, *token);
        let wake = if released == Released::Other {
            None
        } else {
            self.first_waiter(key)
        };
        (Outcome::Released(released), wake)
    }

    /// The entry of a key that has not run out.
    fn live(&self, key: &str, now: Moment) -> Option<&Entry> {
        self.keys.get(key).filter(|entry| entry.expires > now)
    }

    fn leave_queue(&mut self, key: &Arc<str>, token: Token) {
        if let Some(waiting) = self.queues.get_mut(key) {
            waiting.retain(|other| *other != token);
            if waiting.is_empty() {
                self.queues.remove(key);
            }
        }
    }

    /// The first waiter whose manager still listens; the others are dropped on the way.
    fn first_waiter(&mut self, key: &Arc<str>) -> Wake {
        let waiting = self.queues.get_mut(key)?;
        while let Some(token) = waiting.front().copied() {
            if let Some(events) = self.listeners.get(&token.manager()) {
                return Some((
                    events.clone(),
                    Event::Released {
                        key: Arc::clone(key),
                        token,
                    },
                ));
            }
            waiting.pop_front();
        }
        self.queues.remove(key);
        None
    }

    /// Forgets what has run out, whenever the number of keys has doubled: owners that died leave
    /// nothing behind for ever, and nobody pays for looking more than once per key.
    fn sweep(&mut self, now: Moment) {
        if self.keys.len() >= self.sweep_at {
            self.keys.retain(|_, entry| entry.expires > now);
            self.sweep_at = (self.keys.len() * 2).max(64);
        }
    }
}

impl Store for MemoryStore {
    fn execute(&self, operation: Operation, _: Lane) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            // Nothing here ever waits: without this a loop over a free lock starves its runtime.
            tokio::task::coop::consume_budget().await;
            self.run(operation)
        })
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
}

/// A manager's place among the listeners, for as long as its keeper runs.
struct Listening {
    store: Arc<MemoryStore>,
    manager: ManagerId,
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

/// What a test may do to the store, as if it happened by itself.
#[cfg(feature = "test-util")]
impl MemoryStore {
    pub(crate) fn seize(&self, key: &str, ttl: Duration) {
        let expires = self.clock.now() + ttl;
        lock(&self.state).keys.insert(
            key.into(),
            Entry {
                owner: Owner::Stranger,
                expires,
            },
        );
    }

    pub(crate) fn delete(&self, key: &str) -> bool {
        let mut state = lock(&self.state);
        let existed = state.keys.remove(key).is_some();
        let wake = state.first_waiter(&key.into());
        drop(state);
        tell(wake);
        existed
    }

    pub(crate) fn set_fault(&self, fault: Option<Failure>) {
        lock(&self.state).fault = fault;
    }

    /// How many keys are taken, and how many waiters are queued.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let now = self.clock.now();
        let state = lock(&self.state);
        let taken = state
            .keys
            .values()
            .filter(|entry| entry.expires > now)
            .count();
        (taken, state.queues.values().map(VecDeque::len).sum())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}
