//! A connection for each of the application's runtimes and each server, made by the first operation
//! there.
//!
//! A connection that is driven by another thread costs every round trip a detour, and one whose
//! runtime has ended is a broken pipe: both are why they are kept by runtime.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::sync::watch;

use super::connection::Connection;
use super::names::Names;
use super::topology::{Node, Topology};
use crate::clock::{Clock, Moment};
use crate::store::Failure;
use crate::sync::lock;

/// An attempt to connect that has not ended after this long is given up for a new one.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Links {
    topology: Arc<Topology>,
    names: Arc<Names>,
    links: Mutex<HashMap<(Id, Node), Link>>,
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
            links: Mutex::default(),
        }
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
        // Runtimes come and go, and so do servers; what they leave goes when the next one comes.
        links.retain(|(_, node), link| link.runtime_lives() && self.topology.uses(*node));
        let (tell, outcome) = watch::channel(None);
        let (topology, names) = (Arc::clone(&self.topology), Arc::clone(&self.names));
        runtime.spawn(async move {
            tell.send_replace(Some(topology.open(node, &names, None).await));
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
