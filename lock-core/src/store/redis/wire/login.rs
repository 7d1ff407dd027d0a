//! Logging in with the credentials of a provider.
//!
//! The keeper asks the provider, and connections wait for its answer. If a server refuses credentials, because the
//! password has changed, the connection waits for newer ones and tries once more. Before credentials end, the keeper
//! asks for new ones and sends them on every open connection, because hosted servers close a connection whose token
//! has ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisConnectionInfo, Value, cmd};
use tokio::sync::{Notify, watch};

use crate::base::clock::{Clock, Moment};
use crate::base::credentials::{Credentials, Provider};
use crate::base::machine::{self, RedisConnection, sleep, timeout};
use crate::base::sync::lock;
use crate::store::Failure;

/// The message about a provider that does not answer.
pub(in crate::store::redis) const SILENT: &str = "the credentials provider did not answer in time";
/// How long the provider, and a server that is to accept new credentials, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A provider that has failed, or whose answer to a refusal was refused, is not asked again for this long.
const PAUSE: Duration = Duration::from_secs(1);
/// The keeper looks at the clock at least so often, because its timers stand still while the machine sleeps. A
/// connection whose server did not accept renewed credentials gets them again then.
const LOOK: Duration = Duration::from_secs(60);

pub(in crate::store::redis) struct Login {
    provider: Provider,
    state: watch::Sender<State>,
    connections: Mutex<Vec<Arc<LoggedIn>>>,
    /// Notified when a connection has logged in with older credentials than the newest.
    behind: Notify,
}

#[derive(Default)]
struct State {
    known: Option<Known>,
    /// A server has refused the known credentials.
    refused: bool,
    /// Why there are no credentials for a connection at the moment.
    trouble: Option<Failure>,
}

/// The newest answer of the provider.
#[derive(Clone)]
pub(in crate::store::redis) struct Known {
    pub(in crate::store::redis) credentials: Credentials,
    /// Counts the answers, from 1.
    number: u64,
    asked: Moment,
    /// The provider was asked because a server had refused the credentials before.
    answers_a_refusal: bool,
}

struct LoggedIn {
    connection: Weak<RedisConnection>,
    /// The number of the credentials that the server accepted, or is asked to accept; 0: it did not.
    number: AtomicU64,
}

impl Login {
    pub(in crate::store::redis) fn by(provider: Provider) -> Arc<Self> {
        Arc::new(Self {
            provider,
            state: watch::Sender::new(State::default()),
            connections: Mutex::default(),
            behind: Notify::new(),
        })
    }

    /// Returns the newest credentials that no server has refused.
    pub(in crate::store::redis) async fn credentials(&self) -> Result<Known, Failure> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| state.trouble.is_some() || state.usable().is_some());
        let settled = settled.await.map_err(|_| Failure::refused(SILENT))?;
        match (&settled.trouble, settled.usable()) {
            (None, Some(known)) => Ok(known.clone()),
            (trouble, _) => Err(trouble.clone().unwrap_or_else(|| Failure::refused(SILENT))),
        }
    }

    /// Notes that a server has refused credentials. Returns the failure if newer ones cannot be expected yet.
    pub(in crate::store::redis) fn refused(&self, by_server: &Known) -> Result<(), Failure> {
        let pauses = by_server.pause(Clock::System.now()) > Duration::ZERO;
        let failure = pauses.then(|| {
            Failure::misconfigured(
                "the server does not accept the user or password that the credentials provider gives",
            )
        });
        self.state.send_if_modified(|state| {
            let newest = state.known.as_ref().map(|known| known.number);
            let news = newest == Some(by_server.number) && !state.refused;
            if news {
                state.refused = true;
                state.trouble = failure.clone();
            }
            news
        });
        failure.map_or(Ok(()), Err)
    }

    /// Notes a connection that has logged in and is to get new credentials.
    pub(in crate::store::redis) fn note(&self, connection: &Arc<RedisConnection>, by: &Known) {
        let mut connections = lock(&self.connections);
        connections.retain(|noted| noted.connection.strong_count() > 0);
        connections.push(Arc::new(LoggedIn {
            connection: Arc::downgrade(connection),
            number: AtomicU64::new(by.number),
        }));
        self.behind.notify_one();
    }

    /// Returns whether connections wait for the provider.
    pub(in crate::store::redis) fn is_asking(&self) -> bool {
        let state = self.state.borrow();
        state.usable().is_none() && state.trouble.is_none()
    }

    /// Asks the provider when it is time, for as long as the keeper runs.
    pub(in crate::store::redis) async fn keep(&self) {
        let mut state = self.state.subscribe();
        let mut failed: Option<Moment> = None;
        loop {
            self.log_in_where_behind();
            let now = Clock::System.now();
            let rest = state.borrow_and_update().rest(now);
            let rest = failed.map_or(rest, |failed| rest.max((failed + PAUSE).since(now)));
            if !rest.is_zero() {
                tokio::select! {
                    biased;
                    _ = state.changed() => {}
                    () = self.behind.notified() => {}
                    () = sleep(rest.min(LOOK)) => {}
                }
                continue;
            }
            match self.ask().await {
                Ok(credentials) => {
                    failed = None;
                    self.state
                        .send_modify(|state| state.renewed(credentials, now));
                }
                Err(failure) => {
                    if failed.replace(Clock::System.now()).is_none() {
                        tracing::warn!(error = %failure.error, "the credentials provider failed");
                    }
                    self.state.send_modify(|state| state.failed(failure));
                }
            }
        }
    }

    async fn ask(&self) -> Result<Credentials, Failure> {
        let answer = timeout(PATIENCE, self.provider.ask()).await;
        let answer = answer.map_err(|_| Failure::refused(SILENT))?;
        answer.map_err(Failure::from)
    }

    /// Sends the newest credentials on every open connection that has older ones.
    fn log_in_where_behind(&self) {
        let Some(known) = self.state.borrow().usable().cloned() else {
            return;
        };
        for noted in lock(&self.connections).iter() {
            if noted.number.load(Ordering::Relaxed) < known.number
                && let Some(connection) = noted.connection.upgrade()
            {
                noted.number.store(known.number, Ordering::Relaxed);
                let noted = Arc::clone(noted);
                let mut connection = MultiplexedConnection::clone(&connection);
                let auth = auth(&known.credentials);
                machine::spawn(async move {
                    let answer = timeout(PATIENCE, connection.send_packed_command(&auth)).await;
                    if !matches!(answer, Ok(Ok(Value::Okay))) {
                        noted.number.store(0, Ordering::Relaxed);
                        // The server's words are not logged, because newer servers name the user in them.
                        tracing::warn!("a server did not accept the renewed credentials");
                    }
                });
            }
        }
    }
}

impl Known {
    /// Returns how long a provider is not asked again if a server refuses this answer.
    fn pause(&self, now: Moment) -> Duration {
        match self.answers_a_refusal {
            true => (self.asked + PAUSE).since(now),
            false => Duration::ZERO,
        }
    }
}

impl State {
    fn usable(&self) -> Option<&Known> {
        self.known.as_ref().filter(|_| !self.refused)
    }

    /// Returns how long the provider need not be asked.
    fn rest(&self, now: Moment) -> Duration {
        match &self.known {
            None => Duration::ZERO,
            Some(known) if self.refused => known.pause(now),
            Some(known) => match known.credentials.renewed_after() {
                // The time that the provider took may already count.
                Some(time) => (known.asked + time).since(now),
                None => LOOK,
            },
        }
    }

    fn renewed(&mut self, credentials: Credentials, asked: Moment) {
        let number = self.known.as_ref().map_or(0, |known| known.number) + 1;
        *self = Self {
            known: Some(Known {
                credentials,
                number,
                asked,
                answers_a_refusal: self.refused,
            }),
            ..Self::default()
        };
    }

    /// Credentials that no server has refused stay in use.
    fn failed(&mut self, failure: Failure) {
        if self.usable().is_none() {
            self.trouble = Some(failure);
        }
    }
}

fn auth(credentials: &Credentials) -> Cmd {
    let mut auth = cmd("AUTH");
    if let Some(user) = credentials.user() {
        auth.arg(user);
    }
    auth.arg(credentials.secret());
    auth
}

/// Replaces the user and the password of a URL.
pub(in crate::store::redis) fn with_credentials(
    settings: &RedisConnectionInfo,
    credentials: &Credentials,
) -> RedisConnectionInfo {
    // New settings, because a user that is set cannot be taken away.
    let new = RedisConnectionInfo::default()
        .set_db(settings.db())
        .set_protocol(settings.protocol())
        .set_password(credentials.secret());
    match credentials.user() {
        Some(user) => new.set_username(user),
        None => new,
    }
}
