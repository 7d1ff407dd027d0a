//! One connection to the server that takes writes.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio_postgres::{AsyncMessage, Client, Config};

use super::failure::{POOLER, not_connected};
use super::statements::{Statements, first_text};
use super::{PostgresUrl, Tls, schema};
use crate::base::machine::{self, JoinHandle};
use crate::store::Failure;

/// Settings of a session that no other client gets afterwards. An insert waits for another one of the same key.
const SESSION: &str = "-c default_transaction_isolation=read\\ committed -c lock_timeout=2s -c statement_timeout=5s -c jit=off \
                       -c plan_cache_mode=force_generic_plan";
/// One of them, by which the server says whether it has got them.
const LOCK_TIMEOUT: &str = "2s";

/// A connection that is ready for work.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) sql: Statements,
    /// How often the server has warned. It does so where a commit is not on the standbys that it should be on.
    pub(super) warnings: Arc<AtomicU64>,
    /// The server takes no writes any more.
    pub(super) is_left: AtomicBool,
}

/// Opens a connection to the first server that takes writes. Its messages go to `hear`.
pub(super) async fn open(
    config: &Config,
    tls: &Tls,
    mut hear: impl FnMut(AsyncMessage) + Send + 'static,
) -> Result<(Client, Driver), Failure> {
    let opened = machine::connect_postgres(config, Tls::clone(tls)).await;
    let (client, mut connection) = opened.map_err(not_connected)?;
    let driver = machine::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            hear(message);
        }
    });
    Ok((client, Driver(driver)))
}

impl Connection {
    /// Opens a connection, and sets up the table. Returns a task that ends with the connection.
    pub(super) async fn ready(url: &PostgresUrl, tls: &Tls) -> Result<(Self, Driver), Failure> {
        let warnings = Arc::new(AtomicU64::new(0));
        let warned = Arc::clone(&warnings);
        let hear = move |message| {
            if let AsyncMessage::Notice(notice) = message
                && notice.severity() == "WARNING"
            {
                warned.fetch_add(1, Ordering::Relaxed);
            }
        };
        let mut config = url.config.clone();
        if !url.is_pooled() {
            config.options(SESSION);
        }
        let (client, driver) = open(&config, tls, hear).await?;
        if !url.is_pooled() {
            let setting = first_text(&client, "SELECT current_setting('lock_timeout')").await?;
            if setting.as_deref() != Some(LOCK_TIMEOUT) {
                return Err(Failure::misconfigured(POOLER));
            }
        }
        schema::prepare(&client).await?;
        let mut sql = Statements::new();
        if url.prepares {
            for statement in sql.each() {
                statement.prepare(&client).await?;
            }
        }
        let connection = Self {
            client,
            sql,
            warnings,
            is_left: AtomicBool::new(false),
        };
        Ok((connection, driver))
    }

    pub(super) fn is_over(&self) -> bool {
        self.client.is_closed() || self.is_left.load(Ordering::Relaxed)
    }
}

/// The task that drives a connection. It ends when this is dropped.
pub(super) struct Driver(JoinHandle<()>);

impl Driver {
    /// Waits until the connection has ended.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.0).await;
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}
