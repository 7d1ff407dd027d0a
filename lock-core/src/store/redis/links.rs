//! One connection for each of the application's runtimes, made by the first operation there.
//!
//! A connection that is driven by another thread costs every round trip a detour, and one whose
//! runtime has ended is a broken pipe: both are why they are kept by runtime.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::Client;
use tokio::runtime::{Handle, Id};
use tokio::sync::watch;

use super::connection::Connection;
use super::names::Names;
use crate::clock::{Clock, Moment};
use crate::store::Failure;
use crate::sync::lock;

/// An attempt to connect that has not ended after this long is given up for a new one.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Links {
    client: Client,
    mark: Arc<str>,
    by_runtime: Mutex<HashMap<Id, Link>>,
}

enum Link {
    /// A task of that runtime connects; everybody there waits for it.
    Connecting {
        since: Moment,
        outcome: watch::Receiver<Option<Result<Connection, Failure>>>,
    },
    Ready(Connection),
}

impl Links {
    pub(super) fn new(client: Client, names: &Names) -> Self {
        Self {
            client,
            mark: names.mark().into(),
            by_runtime: Mutex::default(),
        }
    }

    /// The connection of the calling task's runtime, which must be `runtime`.
    pub(super) async fn here(&self, runtime: Id) -> Result<Connection, Failure> {
        let mut outcome = match self.ready_or_connecting(runtime) {
            Ok(connection) => return Ok(connection),
            Err(outcome) => outcome,
        };
        let outcome = match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone(),
            Err(_) => None,
        };
        outcome.unwrap_or_else(|| {
            Err(Failure::refused(
                "the runtime ended while it connected to the server",
            ))
        })
    }

    /// The connection of another runtime, if it is there and alive.
    pub(super) fn of(&self, runtime: Id) -> Option<Connection> {
        match lock(&self.by_runtime).get(&runtime) {
            Some(Link::Ready(connection)) if connection.is_usable() => Some(connection.clone()),
            // Made, and not yet taken note of.
            Some(Link::Connecting { outcome, .. }) => match &*outcome.borrow() {
                Some(Ok(connection)) if connection.is_usable() => Some(connection.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    fn ready_or_connecting(
        &self,
        runtime: Id,
    ) -> Result<Connection, watch::Receiver<Option<Result<Connection, Failure>>>> {
        let now = Clock::System.now();
        let mut links = lock(&self.by_runtime);
        match links.get_mut(&runtime) {
            Some(Link::Ready(connection)) if connection.is_usable() => {
                return Ok(connection.clone());
            }
            Some(link @ Link::Connecting { .. }) => {
                let Link::Connecting { since, outcome } = link else {
                    unreachable!("matched just now")
                };
                let done = outcome.borrow().clone();
                match done {
                    Some(Ok(connection)) if connection.is_usable() => {
                        *link = Link::Ready(connection.clone());
                        return Ok(connection);
                    }
                    // Under way, and its task alive.
                    None if now.since(*since) < PATIENCE && outcome.has_changed().is_ok() => {
                        return Err(outcome.clone());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        // Runtimes come and go; what they leave goes when the next one comes.
        links.retain(|_, link| match link {
            Link::Ready(connection) => connection.is_usable(),
            Link::Connecting { outcome, .. } => outcome.has_changed().is_ok(),
        });
        let (tell, outcome) = watch::channel(None);
        let (client, mark) = (self.client.clone(), Arc::clone(&self.mark));
        Handle::current().spawn(async move {
            let connection = Connection::open(&client, &mark, None).await;
            tell.send_replace(Some(connection));
            // The outcome stays readable while somebody waits for it.
            tell.closed().await;
        });
        links.insert(
            runtime,
            Link::Connecting {
                since: now,
                outcome: outcome.clone(),
            },
        );
        Err(outcome)
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Links")
    }
}
