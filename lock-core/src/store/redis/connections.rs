//! A connection for each of the application's runtimes and each server, made by the first operation
//! there.
//!
//! A connection that is driven by another thread costs every round trip a detour, and one whose
//! runtime has ended is a broken pipe: both are why they are kept by runtime.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::sync::watch;

use super::connection::Connection;
use super::keyspace::Names;
use super::push::Inbox;
use super::topology::{Node, Topology};
use crate::base::clock::{Clock, Moment};
use crate::base::sync::lock;
use crate::store::{Event, Events, Failure};

/// An attempt to connect that has not ended after this long is given up for a new one.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Links {
    topology: Arc<Topology>,
    names: Arc<Names>,
    /// Whom to tell what is pushed on the connections, if they are listened on.
    events: OnceLock<Events>,
    links: Mutex<HashMap<(Id, Node), Link, foldhash::quality::RandomState>>,
}

/// What a task of the runtime tells: nothing while it connects, then the connection or why there is
/// none. The task stays, so that its end tells the end of its runtime.
struct Link {
    since: Moment,
    outcome: Outcome,
}

type Outcome = watch::Receiver<Option<Result<Connection, Failure>>>;

impl Link {
    fn runtime_lives(&self) -> bool {
        self.outcome.has_changed().is_ok()
    }

    fn connection(&self) -> Option<Connection> {
        match &*self.outcome.borrow() {
            Some(Ok(connection)) if connection.is_usable() && self.runtime_lives() => {
                Some(connection.clone())
            }
            _ => None,
        }
    }

    /// Whether everybody there waits for it.
    fn is_connecting(&self, now: Moment) -> bool {
        self.outcome.borrow().is_none() && self.runtime_lives() && now.since(self.since) < PATIENCE
    }
}

impl Links {
    pub(super) fn new(topology: &Arc<Topology>, names: &Arc<Names>) -> Self {
        Self {
            topology: Arc::clone(topology),
            names: Arc::clone(names),
            events: OnceLock::new(),
            links: Mutex::default(),
        }
    }

    /// Every connection that is made from here on is listened on, at its runtime's address.
    pub(super) fn listen(&self, events: Events) {
        let _ = self.events.set(events);
    }

    /// The connection of a runtime to a server, if it is there and alive.
    pub(super) fn of(&self, runtime: Id, node: Node) -> Option<Connection> {
        lock(&self.links).get(&(runtime, node))?.connection()
    }

    /// The connection to a server that is driven on `runtime`; a new one, if need be.
    pub(super) async fn on(&self, runtime: &Handle, node: Node) -> Result<Connection, Failure> {
        let mut outcome = self.connecting(runtime, node);
        let told = outcome.wait_for(Option::is_some).await;
        let told = told.ok().and_then(|outcome| outcome.clone());
        told.unwrap_or_else(|| {
            let message = "the runtime ended while it connected to the server";
            Err(Failure::refused(message))
        })
    }

    fn connecting(&self, runtime: &Handle, node: Node) -> Outcome {
        let now = Clock::System.now();
        let mut links = lock(&self.links);
        if let Some(link) = links.get(&(runtime.id(), node))
            && (link.is_connecting(now) || link.connection().is_some())
        {
            return link.outcome.clone();
        }
        let again = links.contains_key(&(runtime.id(), node));
        // Runtimes come and go, and so do servers; what they leave goes when the next one comes.
        links.retain(|(_, node), link| link.runtime_lives() && self.topology.uses(*node));
        let (tell, outcome) = watch::channel(None);
        let (topology, names) = (Arc::clone(&self.topology), Arc::clone(&self.names));
        let events = self.events.get().cloned();
        let id = runtime.id();
        runtime.spawn(async move {
            let inbox = events
                .as_ref()
                .map(|events| Inbox::new(events.manager.on(id), &names, events));
            let opened = topology.open(node, &names, inbox.as_ref()).await;
            let is_open = opened.is_ok();
            tell.send_replace(Some(opened));
            if let Some(events) = events.filter(|_| again && is_open) {
                // What was pushed while nobody listened is lost: every waiter asks again.
                events.notify(Event::Interrupted);
            }
            tell.closed().await;
        });
        links.insert(
            (runtime.id(), node),
            Link {
                since: now,
                outcome: outcome.clone(),
            },
        );
        outcome
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Links")
    }
}
