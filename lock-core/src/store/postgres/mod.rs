//! Locks in a table of PostgreSQL: [cells](super::cells), each of which is one row.
//!
//! A manager has one connection for statements and one that listens. Nothing runs in the server but statements.
//!
//! # Repeats and late copies
//!
//! A statement names the number of the write that it has seen, so a copy does nothing. The first write of a key names none.
//! It refuses itself 3 s after it was sent, by the clock of the server.
//!
//! # What a failover loses
//!
//! With an asynchronous standby the last writes, and so two owners may have a key for a while; with a synchronous one
//! nothing. After a promotion the numbers rise by 16 million, so the fencing tokens of later owners are above those of writes
//! that were lost.

mod audit;
mod batch;
mod care;
mod check;
mod connection;
mod failure;
mod listener;
mod schema;
mod statements;
mod tls;
mod url;

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::types::Type;

use self::batch::{Queue, stored};
use self::connection::{Connection, Driver};
use self::failure::failure;
pub use self::schema::POSTGRES_SCHEMA;
use self::statements::{NOW, Sql};
pub(crate) use self::tls::Tls;
pub(crate) use self::url::PostgresUrl;
use super::cells::{CellStore, Cells, PASSES, Read, Swap, Swapped, card_of, page};
use super::{
    BoxFuture, Events, Failure, Lane, Operation, Outcome, Pattern, Place, Scanned, Store,
    StoreLimits, Told,
};
use crate::audit::Finding;
use crate::base::clock::{Clock, Moment, ServerTime};
use crate::base::identity::Identity;
use crate::base::machine::{sleep, timeout};
use crate::base::settings::Settings;
use crate::base::share::ShareLimit;
use crate::base::sync::lock;
use crate::base::token::Address;
use crate::lease::backoff::pause_after_failure;

/// The most permits of a key, because the row is written whole.
const MOST_PERMITS: u32 = 1_000;
/// The pause before a connection that broke is made again.
const AGAIN: Duration = Duration::from_millis(50);
/// The keys of one page of a listing.
const PAGE: usize = 1_000;

/// The store of PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresStore(CellStore<PostgresCells>);

/// The rows of the table.
pub(crate) struct PostgresCells {
    url: PostgresUrl,
    tls: Tls,
    namespace: String,
    manager: Address,
    connect_timeout: Duration,
    /// The clock of the server, and the moment after which it was read.
    reading: Mutex<Option<(ServerTime, Moment)>>,
    queue: Queue,
    link: watch::Sender<Link>,
    /// Whether messages arrive; `None`: the first attempt to listen is under way.
    listening: watch::Sender<Option<bool>>,
}

/// The state of the connection for statements.
#[derive(Clone)]
enum Link {
    Connecting,
    Up(Arc<Connection>),
    /// It is tried again after a pause.
    Down(Failure),
}

impl PostgresStore {
    pub(crate) fn new(
        url: PostgresUrl,
        tls: Tls,
        settings: &Settings,
        manager: Address,
    ) -> Arc<Self> {
        let cells = PostgresCells {
            url,
            tls,
            namespace: settings.namespace.clone(),
            manager,
            connect_timeout: settings.connect_timeout,
            reading: Mutex::default(),
            queue: Queue::default(),
            link: watch::Sender::new(Link::Connecting),
            listening: watch::Sender::new(None),
        };
        let store = CellStore::new(cells, manager);
        Arc::new(Self(store))
    }
}

impl Store for PostgresStore {
    fn execute(&self, operation: Operation, _: Lane) -> BoxFuture<'_, Outcome> {
        Box::pin(self.0.run(operation))
    }

    fn background(self: Arc<Self>, events: Events) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let cells = &self.0.cells;
            tokio::join!(
                cells.keep_connected(),
                cells.listen(events.clone()),
                cells.keep_card(events.identity.clone()),
                cells.sweep(),
                cells.log_findings(),
            );
        })
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let cells = &self.0.cells;
            cells.connection().await?;
            // Otherwise the first waiters would poll.
            let _ = cells.listening.subscribe().wait_for(Option::is_some).await;
            Ok(())
        })
    }

    fn audit(&self) -> BoxFuture<'_, Result<Vec<Finding>, Failure>> {
        Box::pin(self.0.cells.findings())
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(self.0.cells.ping())
    }

    fn place(&self, _: &[Arc<str>]) -> Place {
        Place::Together
    }

    fn limits(&self) -> StoreLimits {
        StoreLimits {
            // The first write of a key refuses itself a second earlier.
            late_duplicate: Duration::from_secs(4),
            long_cohorts: false,
            ..StoreLimits::default()
        }
    }

    fn check_sql(&self) -> Option<&'static str> {
        Some(check::sql(&self.0.cells.namespace))
    }

    fn refuses_share(&self, limit: ShareLimit) -> Option<&'static str> {
        (!limit.is_reader() && limit.count() > MOST_PERMITS).then_some(
            "a lock on PostgreSQL has at most 1 000 permits, because all its owners are in one row; use Redis for more",
        )
    }

    fn refuses_interop(&self) -> Option<&'static str> {
        Some(
            "`interop` is for clients of other libraries on a Redis server, and PostgreSQL has none; leave it out",
        )
    }
}

impl PostgresCells {
    /// Connects, sends what waits, and connects again, for as long as the manager lives.
    async fn keep_connected(&self) {
        let mut failures = 0;
        loop {
            let opened = timeout(self.connect_timeout, self.connect()).await;
            let opened = opened.unwrap_or_else(|_| {
                Err(Failure::refused(
                    "PostgreSQL did not admit the connection in time",
                ))
            });
            match opened {
                Ok((connection, mut driver)) => {
                    failures = 0;
                    let connection = Arc::new(connection);
                    self.link.send_replace(Link::Up(Arc::clone(&connection)));
                    tokio::select! {
                        () = driver.ended() => {}
                        () = self.send_batches(&connection) => {}
                    }
                    self.link.send_replace(Link::Connecting);
                    sleep(AGAIN).await;
                }
                Err(failure) => {
                    failures += 1;
                    self.link.send_replace(Link::Down(failure.clone()));
                    tokio::select! {
                        () = sleep(pause_after_failure(failures)) => {}
                        () = self.queue.refuse(&failure) => {}
                    }
                }
            }
        }
    }

    async fn connect(&self) -> Result<(Connection, Driver), Failure> {
        let url = &self.url;
        let ready = Connection::ready(&url.config, &self.tls, url.is_pooled(), url.prepares);
        let (connection, driver) = ready.await?;
        let clock = Sql::new(format!("SELECT {NOW}"), &[]);
        let rows = clock.run(&connection.client, &[]).await;
        let rows = rows.map_err(|error| failure(&error))?;
        let now: Option<i64> = rows.first().and_then(|row| row.try_get(0).ok());
        self.note(ServerTime(now.unwrap_or(0).cast_unsigned()));
        Ok((connection, driver))
    }

    /// Returns the connection, or says why there is none at the moment.
    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let mut link = self.link.subscribe();
        let link = link.wait_for(|link| !matches!(link, Link::Connecting));
        match link.await.as_deref() {
            Ok(Link::Up(connection)) => Ok(Arc::clone(connection)),
            Ok(Link::Down(failure)) => Err(failure.clone()),
            Ok(Link::Connecting) | Err(_) => Err(Failure::refused(
                "the connection to PostgreSQL is being made",
            )),
        }
    }

    async fn ping(&self) -> Result<(), Failure> {
        let connection = self.connection().await?;
        // Nothing is changed, and a standby or a role without the right refuses it.
        let ask = Sql::new(
            "UPDATE lockkit.cell SET rev = rev WHERE key = '' AND false",
            &[],
        );
        let asked = ask.run(&connection.client, &[]).await;
        asked.map(drop).map_err(|error| failure(&error))
    }

    fn note(&self, now: ServerTime) {
        *lock(&self.reading) = Some((now, Clock::System.now()));
    }

    /// The clock of the server, and never ahead of it. The clocks of two machines differ by less than a thousandth.
    fn estimate(&self) -> ServerTime {
        let Some((server, local)) = *lock(&self.reading) else {
            return ServerTime(0);
        };
        let since = u64::try_from(Clock::System.now().since(local).as_micros()).unwrap_or(0);
        ServerTime(server.0 + since - since.div_ceil(1000))
    }

    /// The key of a row.
    fn name(&self, key: &str) -> Vec<u8> {
        [self.namespace.as_bytes(), key.as_bytes()].concat()
    }
}

impl Cells for PostgresCells {
    fn swap(&self, swaps: Vec<Swap>) -> BoxFuture<'_, Result<Swapped, Failure>> {
        Box::pin(self.queue.swap(swaps))
    }

    fn read(&self, keys: &[Arc<str>]) -> BoxFuture<'_, Result<Read, Failure>> {
        let names: Vec<_> = keys.iter().map(|key| self.name(key)).collect();
        Box::pin(async move {
            let connection = self.connection().await?;
            let rows = connection.sql.read.run(&connection.client, &[&names]).await;
            let rows = rows.map_err(|error| failure(&error))?;
            let now = rows.first().and_then(|row| row.try_get::<_, i64>(3).ok());
            let stored = rows.iter().skip(1).map(|row| stored(row, 0));
            let stored: Option<Vec<_>> = stored.collect();
            let (Some(now), Some(stored)) = (now, stored) else {
                return Err(Failure::not_understood());
            };
            let now = ServerTime(now.cast_unsigned());
            self.note(now);
            Ok(Read { stored, now })
        })
    }

    fn list(
        &self,
        pattern: Pattern,
        after: Option<Arc<str>>,
    ) -> BoxFuture<'_, Result<Scanned, Failure>> {
        let beginning = self.name(pattern.beginning());
        let from = match &after {
            // The next one in the order of bytes.
            Some(after) => [self.name(after), vec![0]].concat(),
            None => beginning.clone(),
        };
        Box::pin(async move {
            let connection = self.connection().await?;
            let list = Sql::new(
                format!(
                    "SELECT key, ends > {NOW} FROM lockkit.cell WHERE key >= $1 ORDER BY key LIMIT {PAGE}"
                ),
                &[Type::BYTEA],
            );
            let rows = list.run(&connection.client, &[&from]).await;
            let rows = rows.map_err(|error| failure(&error))?;
            let mut keys = Vec::new();
            let mut last = None;
            for row in &rows {
                let name: &[u8] = row.try_get(0).map_err(|_| Failure::not_understood())?;
                if !name.starts_with(&beginning) {
                    return Ok(page(keys, None));
                }
                let Ok(key) = std::str::from_utf8(&name[self.namespace.len()..]) else {
                    continue;
                };
                let key: Arc<str> = key.into();
                if row.try_get(1).unwrap_or(false) && !key.starts_with('!') {
                    keys.push(Arc::clone(&key));
                }
                last = Some(key);
            }
            Ok(page(keys, last.filter(|_| rows.len() == PAGE)))
        })
    }

    fn card(&self, name: Arc<str>) -> BoxFuture<'_, Result<Option<Identity>, Failure>> {
        Box::pin(async move {
            let read = self.read(&[name]).await?;
            let stored = read.stored.into_iter().next().flatten();
            Ok(stored.and_then(|stored| card_of(&stored.bytes)))
        })
    }

    fn send(&self, to: Address, message: String) -> BoxFuture<'_, Result<Told, Failure>> {
        Box::pin(async move {
            let connection = self.connection().await?;
            let tell = Sql::new(
                "SELECT deaf, CASE WHEN NOT deaf THEN pg_notify($2, $3) END \
                 FROM (SELECT pg_try_advisory_xact_lock_shared($1) AS deaf OFFSET 0) AS receiver",
                &[Type::INT8, Type::TEXT, Type::TEXT],
            );
            let (address, channel) = (u64::from(to).cast_signed(), channel(to));
            let told = tell
                .run(&connection.client, &[&address, &channel, &message])
                .await;
            let told = told.map_err(|error| failure(&error))?;
            let is_deaf = told.first().and_then(|row| row.try_get(0).ok());
            Ok(match is_deaf {
                Some(true) => Told::NoReceiver,
                _ => Told::Maybe,
            })
        })
    }

    fn clock(&self) -> ServerTime {
        self.estimate()
    }

    fn listens(&self) -> bool {
        *self.listening.borrow() == Some(true)
    }
}

/// The channel of a manager. It is an identifier of the server.
fn channel(address: Address) -> String {
    format!("lockkit:{address}")
}

impl Debug for PostgresCells {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}
