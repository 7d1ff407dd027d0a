//! The keeper's own connection: renewals, releases in the background, and pushes for waiters.
//!
//! A renewal must not wait for an application's runtime that is blocked, starved or gone, so it has a
//! connection on the keeper's thread.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::Value;
use tokio::sync::{Notify, SetOnce, watch};

use super::{ServerId, Topology};
use crate::base::machine::{self, sleep, timeout};
use crate::base::sync::lock;
use crate::base::token::Address;
use crate::lease::backoff::pause_after_failure;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::keyspace::Keyspace;
use crate::store::redis::wire::push::PushReceiver;
use crate::store::redis::wire::reply::field;
use crate::store::redis::wire::version::{ask_info, version};
use crate::store::{Event, Events, Failure};

/// How long connecting to one of several servers may take.
const ELSEWHERE: Duration = Duration::from_secs(1);
/// How long `connect` waits for the audit of the servers' settings.
const AUDIT: Duration = Duration::from_millis(250);

pub(in crate::store::redis) struct KeeperConnection {
    pub(in crate::store::redis) topology: Arc<Topology>,
    pub(in crate::store::redis) names: Arc<Keyspace>,
    /// The number of replicas that have to confirm a lock, for the audit.
    pub(in crate::store::redis) replica_acks: u16,
    state: watch::Sender<ConnectionState>,
    /// Notified when a caller finds the connection silent.
    replace: Notify,
    /// The name that no other server has, if this user may read it.
    run_id: Mutex<Option<String>>,
    connect_timeout: Duration,
    /// Set when the audit has been logged, or will be without further waiting: soon after connecting.
    pub(in crate::store::redis) audited: SetOnce<()>,
}

#[derive(Clone)]
enum ConnectionState {
    Connecting,
    Ready(Connection, ServerId),
    Down(Failure),
}

impl KeeperConnection {
    pub(in crate::store::redis) fn new(
        topology: &Arc<Topology>,
        names: &Arc<Keyspace>,
        connect_timeout: Duration,
        replica_acks: u16,
    ) -> Self {
        Self {
            topology: Arc::clone(topology),
            names: Arc::clone(names),
            replica_acks,
            state: watch::Sender::new(ConnectionState::Connecting),
            replace: Notify::new(),
            run_id: Mutex::default(),
            connect_timeout,
            audited: SetOnce::new(),
        }
    }

    /// Returns the connection, or why there is none at the moment.
    pub(in crate::store::redis) async fn connection(
        &self,
    ) -> Result<(Connection, ServerId), Failure> {
        self.connection_if(|_| true).await
    }

    /// As [`KeeperConnection::connection`], to that server only. A connection to another server is left for it.
    pub(in crate::store::redis) async fn connection_to(
        &self,
        node: ServerId,
    ) -> Result<Connection, Failure> {
        let (connection, _) = self.connection_if(|home| home == node).await?;
        Ok(connection)
    }

    /// Returns the connection to that server, if it is open.
    pub(in crate::store::redis) fn open_connection(&self, node: ServerId) -> Option<Connection> {
        match &*self.state.borrow() {
            ConnectionState::Ready(connection, home) if connection.is_usable() && *home == node => {
                Some(connection.clone())
            }
            _ => None,
        }
    }

    async fn connection_if(
        &self,
        fits: impl Fn(ServerId) -> bool,
    ) -> Result<(Connection, ServerId), Failure> {
        let mut state = self.state.subscribe();
        loop {
            match &*state.borrow_and_update() {
                ConnectionState::Ready(connection, home)
                    if connection.is_usable() && fits(*home) =>
                {
                    return Ok((connection.clone(), *home));
                }
                ConnectionState::Ready(..) => self.replace.notify_one(),
                ConnectionState::Down(failure) => return Err(failure.clone()),
                ConnectionState::Connecting => {}
            }
            if state.changed().await.is_err() {
                return Err(Failure::refused("the lock manager has ended"));
            }
        }
    }

    async fn audit(self: Arc<Self>, home: ServerId, on: Connection) {
        let mut telling = pin!(self.log_findings(home, &on));
        let limit = AUDIT.min(self.connect_timeout / 4);
        let told = timeout(limit, telling.as_mut()).await.is_ok();
        let _ = self.audited.set(());
        if !told {
            telling.await;
        }
    }

    /// Returns whether pushes to the manager's own address arrive at the moment.
    pub(in crate::store::redis) fn is_listening(&self) -> bool {
        match &*self.state.borrow() {
            ConnectionState::Ready(connection, _) => connection.is_listening(),
            ConnectionState::Connecting | ConnectionState::Down(_) => false,
        }
    }

    pub(in crate::store::redis) fn run_id(&self) -> Option<String> {
        lock(&self.run_id).clone()
    }

    /// Connects, listens, and reconnects, for as long as the keeper runs.
    pub(in crate::store::redis) async fn run(self: &Arc<Self>, events: Events) {
        let topology = &self.topology;
        let mut failures = 0;
        let mut audited = false;
        let mut begins = true;
        loop {
            let receiver = PushReceiver::new(Some(events.manager), &self.names, &events);
            let limit = if std::mem::take(&mut begins) || topology.is_one_server() {
                // Shorter than the timeout of a caller that waits for it, because this error explains more.
                // `connect` waits for the first attempt only, and learns of its failure at once.
                self.connect_timeout * 9 / 10
            } else {
                // Another server may answer.
                self.connect_timeout.min(ELSEWHERE)
            };
            let opened = timeout(limit, self.open(events.manager, &receiver)).await;
            let opened = opened.unwrap_or_else(|_| Err(Failure::refused(topology.silent())));
            match opened {
                Ok((connection, home)) => {
                    failures = 0;
                    self.state
                        .send_replace(ConnectionState::Ready(connection.clone(), home));
                    if !audited {
                        audited = true;
                        machine::spawn(Arc::clone(self).audit(home, connection.clone()));
                    }
                    // Pushes were lost while no connection listened: every waiter asks again.
                    events.notify(Event::Interrupted);
                    if connection.is_watching() {
                        events.notify(Event::Unwatched);
                    }
                    let changed = || events.notify(Event::Interrupted);
                    tokio::select! {
                        biased;
                        () = receiver.ended() => {}
                        () = self.replace.notified() => {}
                        () = topology.move_out(home) => {}
                        () = topology.silence(&connection, changed) => {}
                    }
                    topology.doubt();
                    self.state.send_replace(ConnectionState::Connecting);
                    events.notify(Event::Interrupted);
                }
                Err(failure) => {
                    failures += 1;
                    topology.doubt();
                    self.state.send_replace(ConnectionState::Down(failure));
                    sleep(pause_after_failure(failures)).await;
                }
            }
        }
    }

    async fn open(
        &self,
        manager: Address,
        receiver: &Arc<PushReceiver>,
    ) -> Result<(Connection, ServerId), Failure> {
        let topology = &self.topology;
        let home = topology.home(manager).await?;
        let connection = tokio::select! {
            biased;
            opened = topology.open(home, &self.names, Some(receiver)) => opened?,
            () = topology.move_out(home) => {
                return Err(Failure::refused("another server has taken its place"));
            }
        };
        let info = ask_info(&connection).await?;
        check_version(info.as_ref())?;
        connection.watch_if_possible(info.as_ref());
        let run_id = info.as_ref().and_then(|info| field(info, "run_id"));
        *lock(&self.run_id) = run_id.map(str::to_owned);
        Ok((connection, home))
    }
}

/// Checks for Redis 6.2, because the scripts need `SET … PXAT`. Without the right to read the version it is
/// assumed.
fn check_version(info: Option<&Value>) -> Result<(), Failure> {
    match info.and_then(version) {
        Some(version) if version < (6, 2, 0) => Err(Failure::misconfigured(format!(
            "the server is Redis {}.{}; use 6.2 or later, or Valkey",
            version.0, version.1
        ))),
        _ => Ok(()),
    }
}
