//! The connection on which the messages to this manager arrive.
//!
//! Its session holds an advisory lock with the address of the manager for as long as it listens. A statement that hands a key
//! over asks whether that lock is free: then nobody listens there. The server frees the lock with the session.

use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};

use super::connection::{Driver, open};
use super::statements::Sql;
use super::{Link, PostgresCells, SLOW, channel};
use crate::base::machine::{sleep, timeout};
use crate::lease::backoff::pause_after_failure;
use crate::store::cells::message;
use crate::store::{Event, Events, Failure};

impl PostgresCells {
    /// Listens for as long as the manager lives.
    pub(super) async fn listen(&self, events: Events) {
        if self.url.is_deaf() {
            self.listening.send_replace(Some(false));
            return;
        }
        let mut failures = 0;
        loop {
            if let Ok((client, mut driver)) = self.start_listening(&events).await {
                failures = 0;
                self.listening.send_replace(Some(true));
                // Messages of the time before are lost, and waiters have polled so far.
                events.notify(Event::Interrupted);
                // A server that takes no writes any more sends no messages about them.
                let mut link = self.link.subscribe();
                tokio::select! {
                    biased;
                    () = driver.ended() => {}
                    _ = link.wait_for(|link| !matches!(link, Link::Up(_))) => {}
                }
                drop(client);
                self.listening.send_replace(Some(false));
                events.notify(Event::Interrupted);
            }
            self.listening.send_replace(Some(false));
            failures += 1;
            sleep(pause_after_failure(failures)).await;
        }
    }

    async fn start_listening(&self, events: &Events) -> Result<(Client, Driver), Failure> {
        let told = events.clone();
        let hear = move |message| {
            if let AsyncMessage::Notification(notification) = message
                && let Some(event) = message::read(notification.payload())
            {
                told.notify(event);
            }
        };
        self.connection().await?;
        let ways = self.ways().await?;
        let opened = open(ways.listening(), &self.tls, hear);
        // `LockManager::connect` waits until the first attempt has ended.
        let opened = timeout(self.connect_timeout / 2, opened).await;
        let (client, driver) = opened.unwrap_or_else(|_| Err(Failure::refused(SLOW)))?;
        let (address, channel) = (u64::from(self.manager).cast_signed(), channel(self.manager));
        // The lock may be that of an earlier session, which the server has not noticed to be gone.
        let listen = format!(
            "SET statement_timeout = 0; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; \
             SET tcp_keepalives_count = 3; LISTEN \"{channel}\"; SELECT pg_advisory_lock({address})"
        );
        client.batch_execute(&listen).await?;
        let is_free = Sql::new("SELECT pg_try_advisory_xact_lock_shared($1)", &[Type::INT8]);
        let rows = self.ask(&is_free, &[&address]).await?;
        match rows.first().map(|row| row.try_get(0)) {
            Some(Ok(false)) => Ok((client, driver)),
            _ => Err(Failure::misconfigured(
                "`listen` of the URL leads to another database, or to another server, than the URL",
            )),
        }
    }
}
