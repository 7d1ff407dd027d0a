//! Pushes of a server on one connection.
//!
//! The connection's driver hands a push on where it is driven, so that a waiter on the same runtime is woken
//! without a detour over another thread, which would be a third of a wake-up. So each runtime has an address of
//! its own. The tokens of its waiters begin with that address, and its connection listens there. In a cluster,
//! where a runtime has a connection to each node, pushes go to the connection on which the manager listens.
//!
//! A `FLUSHALL` is pushed too: a server reports it to each client that has turned on tracking, even if no key
//! is tracked. The changes of keys arrive where the keeper renews leases, see `commands/renewal.rs`. In a cluster
//! that is a connection to each node that has leases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::{Cmd, PushInfo, PushKind, Value};
use tokio::sync::Notify;

use super::card::card;
use super::keyspace::Keyspace;
use super::operator_reply::order;
use super::reply::text;
use crate::base::clock::ServerTime;
use crate::base::fence::FencingToken;
use crate::base::token::{Address, Token};
use crate::lease::Grant;
use crate::store::{Event, Events, News};

/// Receives the pushes of one connection for the waiters of an address.
pub(in crate::store::redis) struct PushReceiver {
    /// `None`: the connection only renews leases. It receives changes of keys, and no messages for waiters.
    address: Option<Address>,
    names: Arc<Keyspace>,
    events: Events,
    listening: AtomicBool,
    ended: Notify,
}

impl PushReceiver {
    pub(in crate::store::redis) fn new(
        address: Option<Address>,
        names: &Arc<Keyspace>,
        events: &Events,
    ) -> Arc<Self> {
        Arc::new(Self {
            address,
            names: Arc::clone(names),
            events: events.clone(),
            listening: AtomicBool::new(false),
            ended: Notify::new(),
        })
    }

    /// The channel of the waiters' messages, if they arrive here.
    pub(in crate::store::redis) fn channel(&self) -> Option<String> {
        self.address.map(|address| self.names.channel(address))
    }

    /// Returns whether pushes for a waiter would arrive here.
    pub(in crate::store::redis) fn tells(&self, waiter: Token) -> bool {
        self.address == Some(waiter.address())
    }

    /// The command that writes the identity of the manager, unless it is anonymous.
    pub(in crate::store::redis) fn card(&self) -> Option<Cmd> {
        let identity = self.events.identity.as_ref()?;
        Some(card(&self.names, &self.address?.into(), identity))
    }

    /// Notes that the server has accepted the subscription. From here on no push is missed until the connection
    /// ends.
    pub(in crate::store::redis) fn open(&self) {
        self.listening.store(true, Ordering::Relaxed);
    }

    /// Returns whether pushes arrive at the moment.
    pub(in crate::store::redis) fn is_open(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// Waits until the connection has ended.
    pub(in crate::store::redis) async fn ended(&self) {
        self.ended.notified().await;
    }

    pub(in crate::store::redis) fn take(&self, push: &PushInfo) {
        match push.kind {
            PushKind::Message => {
                let event = told(&self.names, push).or_else(|| order(&self.names, push));
                if let Some(event) = event {
                    self.events.notify(event);
                }
            }
            PushKind::Invalidate => match push.data.first() {
                Some(Value::Nil) => self.events.notify(Event::Flushed),
                Some(Value::Array(locks)) => {
                    let keys = locks.iter().filter_map(|lock| self.names.key(text(lock)?));
                    keys.for_each(|key| self.events.notify(Event::Changed(key.into())));
                }
                _ => {}
            },
            PushKind::Disconnection => {
                let listened = self.listening.swap(false, Ordering::Relaxed);
                self.ended.notify_one();
                if listened {
                    // Later pushes are lost: every waiter asks again.
                    self.events.notify(Event::Interrupted);
                }
            }
            _ => {}
        }
    }
}

/// Reads a message of the scripts: `g <token> <s> <us> <grant in ms> <fence> <lock>`, or `n <token> <grant in
/// ms> <ms> <lock>`. With `s` in place of `g`, all shares that may enter have entered.
fn told(names: &Keyspace, push: &PushInfo) -> Option<Event> {
    let [_channel, message] = push.data.as_slice() else {
        return None;
    };
    let (kind, rest) = text(message)?.split_once(' ')?;
    let (token, rest) = rest.split_once(' ')?;
    let (news, lasts, lock) = match kind {
        "g" | "s" => {
            let (mut grant, lasts, lock) = given(rest)?;
            // A release that knows no shares gives the key to the first waiter only.
            grant.asks = kind == "g" && Token::parse(token)?.share().is_some();
            (News::Given(grant), lasts, lock)
        }
        "n" => {
            let (lasts, rest) = rest.split_once(' ')?;
            let (after, lock) = rest.split_once(' ')?;
            let after = Duration::from_millis(after.parse().ok()?);
            (News::Next(after), lasts.parse().ok()?, lock)
        }
        _ => return None,
    };
    Some(Event::News {
        key: names.key(lock)?.into(),
        token: Token::parse(token)?,
        grant: Duration::from_millis(lasts),
        news,
    })
}

/// Reads `<s> <us> <grant in ms> <fence> <lock>`: the start, length and fencing token of a grant. A fencing
/// token of `-` is the start.
fn given(rest: &str) -> Option<(Grant, u64, &str)> {
    let mut words = rest.splitn(5, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (seconds, micros, lasts) = (number()?, number()?, number()?);
    let now = seconds.checked_mul(1_000_000)?.checked_add(micros)?;
    let fence = match words.next()? {
        "-" => now,
        fence => fence.parse().ok()?,
    };
    // A key ends at a whole millisecond, counted from the last one.
    let ends = lasts.checked_add(now / 1_000)?.checked_mul(1_000)?;
    let grant = Grant {
        fence: FencingToken::new(fence)?,
        given: ServerTime(now),
        ends: ServerTime(ends),
        asks: false,
    };
    Some((grant, lasts, words.next()?))
}
