//! Locks in a table of PostgreSQL: [cells](super::cells), each of which is one row.
//!
//! A manager has one connection for statements and one that listens. Nothing runs in the server but statements.
//!
//! # Repeats and late copies
//!
//! A statement names the write that it has seen, so a copy does nothing. The first write of a key names none. It refuses itself
//! 3 s after it was sent, by the clock of the server.
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
mod outbox;
mod queue;
mod schema;
mod statements;
mod url;

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
#[cfg(not(feature = "postgres-tls"))]
pub(crate) use tokio_postgres::NoTls as Tls;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
#[cfg(feature = "postgres-tls")]
pub(crate) use tokio_postgres_rustls::MakeRustlsConnect as Tls;

use self::batch::stored;
use self::connection::{Connection, Driver};
use self::queue::Queue;
pub use self::schema::POSTGRES_SCHEMA;
use self::statements::{NOW, Params, Sql};
pub(crate) use self::url::PostgresUrl;
use super::cells::{Cells, PASSES, Read, Swap, Swapped, page};
use super::{BoxFuture, Events, Failure, Pattern, Scanned, Told};
use crate::audit::Finding;
use crate::base::clock::{Clock, Moment, ServerTime};
use crate::base::credentials::Provider;
use crate::base::machine::{sleep, timeout};
use crate::base::settings::Settings;
use crate::base::sync::lock;
use crate::base::token::Address;
use crate::lease::backoff::pause_after_failure;

/// The pause before a connection that broke is made again.
const AGAIN: Duration = Duration::from_millis(50);
const SLOW: &str = "PostgreSQL did not admit the connection in time";
/// The keys of one page of a listing.
const PAGE: usize = 1_000;

/// The rows of the table.
pub(crate) struct PostgresCells {
    url: PostgresUrl,
    tls: Tls,
    namespace: String,
    manager: Address,
    connect_timeout: Duration,
    credentials: Option<Provider>,
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

impl PostgresCells {
    pub(crate) fn new(url: PostgresUrl, tls: Tls, settings: &Settings, manager: Address) -> Self {
        Self {
            url,
            tls,
            namespace: settings.namespace.clone(),
            manager,
            connect_timeout: settings.connect_timeout,
            credentials: settings.credentials.clone(),
            reading: Mutex::default(),
            queue: Queue::default(),
            link: watch::Sender::new(Link::Connecting),
            listening: watch::Sender::new(None),
        }
    }

    /// Connects, sends what waits, and connects again, for as long as the manager lives.
    async fn keep_connected(&self) {
        let mut failures = 0;
        loop {
            let opened = timeout(self.connect_timeout, self.connect()).await;
            let opened = opened.unwrap_or_else(|_| Err(Failure::refused(SLOW)));
            match opened {
                Ok((connection, mut driver)) => {
                    failures = 0;
                    let connection = Arc::new(connection);
                    self.link.send_replace(Link::Up(Arc::clone(&connection)));
                    tokio::select! {
                        biased;
                        () = driver.ended() => {}
                        () = self.send_batches(&connection) => {}
                        () = self.queue.outbox.send(&connection) => {}
                    }
                    self.link.send_replace(Link::Connecting);
                    sleep(AGAIN).await;
                }
                Err(failure) => {
                    failures += 1;
                    self.link.send_replace(Link::Down(failure.clone()));
                    tokio::select! {
                        biased;
                        () = sleep(pause_after_failure(failures)) => {}
                        () = self.queue.refuse(&failure) => {}
                    }
                }
            }
        }
    }

    async fn connect(&self) -> Result<(Connection, Driver), Failure> {
        let ready = Connection::ready(&self.ways().await?, &self.tls).await;
        let (connection, driver) = ready?;
        let clock = Sql::new(format!("SELECT {NOW}"), &[]);
        let rows = clock.run(&connection.client, &[]).await?;
        let now: Option<i64> = rows.first().and_then(|row| row.try_get(0).ok());
        self.note(ServerTime(now.unwrap_or(0).cast_unsigned()));
        Ok((connection, driver))
    }

    /// Returns the ways to the server, with the credentials of the moment.
    async fn ways(&self) -> Result<PostgresUrl, Failure> {
        let mut ways = self.url.clone();
        if let Some(provider) = &self.credentials {
            let given = provider.ask().await?;
            for config in ways.listen.iter_mut().chain([&mut ways.config]) {
                config.password(given.secret());
                given.user().map(|user| config.user(user));
            }
        }
        Ok(ways)
    }

    /// Returns the connection, or says why there is none at the moment.
    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let mut link = self.link.subscribe();
        let link = link.wait_for(|link| !matches!(link, Link::Connecting));
        match link.await.as_deref() {
            Ok(Link::Up(connection)) => Ok(Arc::clone(connection)),
            Ok(Link::Down(failure)) => Err(failure.clone()),
            _ => Err(Failure::refused(
                "the connection to PostgreSQL is being made",
            )),
        }
    }

    /// Runs a statement in one round trip.
    async fn ask(&self, sql: &Sql, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        let connection = self.connection().await?;
        Ok(sql.run(&connection.client, params).await?)
    }

    fn note(&self, now: ServerTime) {
        *lock(&self.reading) = Some((now, Clock::System.now()));
    }

    /// The key of a row.
    fn name(&self, key: &str) -> Vec<u8> {
        [self.namespace.as_bytes(), key.as_bytes()].concat()
    }
}

impl Cells for PostgresCells {
    fn background(&self, events: Events) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (connected, listening) = (self.keep_connected(), self.listen(events));
            tokio::join!(connected, listening, self.sweep(), self.log_findings());
        })
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            self.connection().await?;
            // Otherwise the first waiters would poll.
            let _ = self.listening.subscribe().wait_for(Option::is_some).await;
            Ok(())
        })
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            // Nothing is changed, and a standby or a role without the right refuses it.
            let nothing = "UPDATE lockkit.cell SET rev = rev WHERE key = '' AND false";
            self.ask(&Sql::new(nothing, &[]), &[]).await.map(drop)
        })
    }

    fn audit(&self) -> BoxFuture<'_, Result<Vec<Finding>, Failure>> {
        Box::pin(self.findings())
    }

    fn swap(&self, swaps: Vec<Swap>) -> BoxFuture<'_, Result<Swapped, Failure>> {
        Box::pin(self.queue.swap(swaps))
    }

    fn read(&self, keys: &[Arc<str>]) -> BoxFuture<'_, Result<Read, Failure>> {
        let names: Vec<_> = keys.iter().map(|key| self.name(key)).collect();
        Box::pin(async move {
            let connection = self.connection().await?;
            let read = &connection.sql.read;
            let rows = read.run(&connection.client, &[&names]).await?;
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
        let from = self.name(after.as_deref().unwrap_or(pattern.beginning()));
        // No text has such a byte.
        let until = [self.name(pattern.beginning()), vec![u8::MAX]].concat();
        let after_from = if after.is_some() { ">" } else { ">=" };
        Box::pin(async move {
            let list = Sql::new(
                format!(
                    "SELECT key, ends > {NOW} FROM lockkit.cell WHERE key {after_from} $1 AND key < $2 ORDER BY key LIMIT {PAGE}"
                ),
                &[Type::BYTEA, Type::BYTEA],
            );
            let rows = self.ask(&list, &[&from, &until]).await?;
            let key = |row: &Row| -> Option<Arc<str>> {
                let name = row.try_get::<_, &[u8]>(0).ok()?;
                let key = name.strip_prefix(self.namespace.as_bytes())?;
                std::str::from_utf8(key).ok().map(Arc::from)
            };
            let stands = |row: &&Row| row.try_get(1).unwrap_or(false);
            let keys = rows.iter().filter(stands).filter_map(key);
            let last = rows.last().filter(|_| rows.len() == PAGE).and_then(key);
            Ok(page(
                keys.filter(|key| !key.starts_with('!')).collect(),
                last,
            ))
        })
    }

    fn send(&self, to: Address, message: String) -> BoxFuture<'_, Result<Told, Failure>> {
        Box::pin(async move {
            let tell = Sql::new(
                "SELECT deaf, CASE WHEN NOT deaf THEN pg_notify($2, $3) END \
                 FROM (SELECT pg_try_advisory_xact_lock_shared($1) AS deaf OFFSET 0) AS receiver",
                &[Type::INT8, Type::TEXT, Type::TEXT],
            );
            let (address, channel) = (u64::from(to).cast_signed(), channel(to));
            let told = self.ask(&tell, &[&address, &channel, &message]).await?;
            let is_deaf = told.first().and_then(|row| row.try_get(0).ok());
            Ok(match is_deaf {
                Some(true) => Told::NoReceiver,
                _ => Told::Maybe,
            })
        })
    }

    fn told(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut link = self.link.subscribe();
            tokio::select! {
                biased;
                () = self.queue.outbox.is_sent() => {}
                // The next connection sends them.
                _ = link.wait_for(|link| matches!(link, Link::Down(_))) => {}
            }
        })
    }

    fn clock(&self) -> ServerTime {
        let Some((server, local)) = *lock(&self.reading) else {
            return ServerTime(0);
        };
        let since = u64::try_from(Clock::System.now().since(local).as_micros()).unwrap_or(0);
        // Never ahead of the server's: the clocks of two machines differ by less than a thousandth.
        ServerTime(server.0 + since - since.div_ceil(1000))
    }

    fn listens(&self) -> bool {
        *self.listening.borrow() == Some(true)
    }

    fn late_duplicate(&self) -> Duration {
        // The first write of a key refuses itself a second earlier.
        Duration::from_secs(4)
    }

    fn check_sql(&self) -> Option<&'static str> {
        Some(check::sql(&self.namespace))
    }
}

/// The channel of a manager. It is an identifier of the server.
fn channel(address: Address) -> String {
    format!("lockkit:{address}")
}

impl Debug for PostgresCells {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresCells").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_stays_while_no_connection_is_made_and_no_release_waits_for_it() {
        // No server listens on port 1.
        let url = PostgresUrl::parse("postgres://locks@127.0.0.1:1/locks").expect("a URL");
        let tls = url.tls().expect("TLS");
        let cells = PostgresCells::new(url, tls, &Settings::default(), Address::random());
        let outbox = &cells.queue.outbox;
        outbox.add([("channel".to_owned(), "text".to_owned())].into_iter());
        tokio::select! {
            () = cells.keep_connected() => {}
            () = cells.told() => {}
        }
        assert!(matches!(*cells.link.borrow(), Link::Down(_)));
        assert_eq!(outbox.next(9).1, ["text"]);
    }
}
