//! Connections of the application's runtimes, one for each runtime and server, made by the first operation
//! there.
//!
//! A connection that is driven on another thread costs every round trip a detour of some 15 µs, and a
//! connection whose runtime has ended is a broken pipe. So each runtime has its own. A broken connection is
//! replaced in the same call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use super::{ServerId, Topology};
use crate::base::clock::{Clock, Moment};
use crate::base::machine::{Handle, HashState, Id};
use crate::base::sync::lock;
use crate::base::token::Address;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::keyspace::Keyspace;
use crate::store::redis::wire::push::PushReceiver;
use crate::store::redis::wire::version::ask_info;
use crate::store::{Event, Events, Failure};

/// An attempt to connect that takes longer is given up for a new one.
const PATIENCE: Duration = Duration::from_secs(1);

pub(in crate::store::redis) struct Connections {
    topology: Arc<Topology>,
    names: Arc<Keyspace>,
    /// The receiver of pushes, if the connections listen.
    events: OnceLock<Events>,
    /// The receiver of changes of keys, and the runtime whose connections report them.
    changes: OnceLock<(Id, Events)>,
    connections: Mutex<HashMap<(Id, ServerId), RuntimeConnection, HashState>>,
}

/// One connection of a runtime. A task of the runtime reports nothing while it connects, then the connection or
/// why there is none. The task stays alive, so that its end shows the end of its runtime.
struct RuntimeConnection {
    since: Moment,
    outcome: Opened,
}

type Opened = watch::Receiver<Option<Result<Connection, Failure>>>;

impl RuntimeConnection {
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

    /// Returns whether other callers wait for the connection.
    fn is_connecting(&self, now: Moment) -> bool {
        self.outcome.borrow().is_none() && self.runtime_lives() && now.since(self.since) < PATIENCE
    }
}

impl Connections {
    pub(in crate::store::redis) fn new(topology: &Arc<Topology>, names: &Arc<Keyspace>) -> Self {
        Self {
            topology: Arc::clone(topology),
            names: Arc::clone(names),
            events: OnceLock::new(),
            changes: OnceLock::new(),
            connections: Mutex::default(),
        }
    }

    /// Has every later connection listen at its runtime's address.
    pub(in crate::store::redis) fn listen(&self, events: Events) {
        let _ = self.events.set(events);
    }

    /// Returns the addresses at which the runtimes of a manager listen.
    pub(in crate::store::redis) fn addresses(&self, manager: Address) -> Vec<Address> {
        let connections = lock(&self.connections);
        let open = connections
            .iter()
            .filter(|(_, it)| it.connection().is_some());
        let mut addresses: Vec<_> = open.map(|((id, _), _)| manager.on(*id)).collect();
        addresses.retain(|_| self.events.get().is_some());
        addresses
    }

    /// Has every later connection of a runtime report changes of keys.
    pub(in crate::store::redis) fn watch(&self, runtime: Id, events: Events) {
        let _ = self.changes.set((runtime, events));
    }

    /// Returns the connection of a runtime to a server, if it is open.
    pub(in crate::store::redis) fn of(&self, runtime: Id, node: ServerId) -> Option<Connection> {
        lock(&self.connections).get(&(runtime, node))?.connection()
    }

    /// Returns the connection to a server that is driven on `runtime`; connects if need be.
    pub(in crate::store::redis) async fn on(
        &self,
        runtime: &Handle,
        node: ServerId,
    ) -> Result<Connection, Failure> {
        let mut outcome = self.connecting(runtime, node);
        let told = outcome.wait_for(Option::is_some).await;
        let told = told.ok().and_then(|outcome| outcome.clone());
        told.unwrap_or_else(|| {
            let message = "the runtime ended while it connected to the server";
            Err(Failure::refused(message))
        })
    }

    fn connecting(&self, runtime: &Handle, node: ServerId) -> Opened {
        let now = Clock::System.now();
        let mut connections = lock(&self.connections);
        if let Some(connection) = connections.get(&(runtime.id(), node))
            && (connection.is_connecting(now) || connection.connection().is_some())
        {
            return connection.outcome.clone();
        }
        let again = connections.contains_key(&(runtime.id(), node));
        // Runtimes and servers come and go. The next attempt to connect removes what they left.
        connections.retain(|(_, node), connection| {
            connection.runtime_lives() && self.topology.uses(*node)
        });
        let (tell, outcome) = watch::channel(None);
        let (topology, names) = (Arc::clone(&self.topology), Arc::clone(&self.names));
        let events = self.events.get().cloned();
        let id = runtime.id();
        let changes = self.changes.get().filter(|(renews, _)| *renews == id);
        let changes = changes.map(|(_, events)| events.clone());
        runtime.spawn(async move {
            let address = events.as_ref().map(|events| events.manager.on(id));
            let receiver = events.as_ref().or(changes.as_ref());
            let receiver = receiver.map(|events| PushReceiver::new(address, &names, events));
            let mut opened = topology.open(node, &names, receiver.as_ref()).await;
            if let (Some(changes), Ok(connection)) = (&changes, &opened) {
                match ask_info(connection).await {
                    Ok(info) => connection.watch_if_possible(info.as_ref()),
                    Err(failure) => opened = Err(failure),
                }
                if again && opened.is_ok() {
                    changes.notify(Event::Unwatched);
                }
            }
            let is_open = opened.is_ok();
            tell.send_replace(Some(opened));
            if let Some(events) = events.filter(|_| again && is_open) {
                // Pushes were lost while no connection listened: every waiter asks again.
                events.notify(Event::Interrupted);
            }
            tell.closed().await;
        });
        connections.insert(
            (runtime.id(), node),
            RuntimeConnection {
                since: now,
                outcome: outcome.clone(),
            },
        );
        outcome
    }
}
