//! Work in the background: rows that are over, and the identity of the manager.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::types::Type;

use super::PostgresCells;
use super::failure::failure;
use super::statements::{NOW, Sql, UNSYNCED};
use crate::base::identity::Identity;
use crate::base::machine::sleep;
use crate::store::Failure;
use crate::store::cells::card_bytes;

/// A row is kept for so long after its end. A key that comes again stays in its page, and no first write is late.
const KEPT: Duration = Duration::from_secs(60);
/// The pause between two looks at all rows.
const BETWEEN: Duration = Duration::from_secs(20);
/// The rows of one look.
const PAGE: i64 = 1_000;
/// One manager at a time looks.
const SWEEP: i64 = 0x6c6f_636b_6b69_7401;
/// How long an identity stays: long enough to be read after a crash.
const CARD: Duration = Duration::from_secs(60 * 60);
const CARD_AGAIN: Duration = Duration::from_secs(20 * 60);

impl PostgresCells {
    /// Deletes rows that are over, for as long as the manager lives.
    pub(super) async fn sweep(&self) {
        let kept = KEPT.as_micros();
        let sweep = Sql::new(
            format!(
                "WITH mine AS MATERIALIZED (\
                    SELECT pg_try_advisory_xact_lock({SWEEP}) AS turn\
                ), page AS MATERIALIZED (\
                    SELECT key FROM lockkit.cell WHERE key > $1 AND (SELECT turn FROM mine) ORDER BY key LIMIT {PAGE}\
                ), over AS MATERIALIZED (\
                    SELECT key FROM lockkit.cell WHERE key IN (SELECT key FROM page) \
                    AND greatest(ends, at) < {NOW} - {kept} FOR UPDATE SKIP LOCKED\
                ), gone AS (\
                    DELETE FROM lockkit.cell WHERE key IN (SELECT key FROM over)\
                ) SELECT key, {UNSYNCED} FROM page ORDER BY key DESC LIMIT 1"
            ),
            &[Type::BYTEA],
        );
        loop {
            let mut last: Vec<u8> = Vec::new();
            // A page that is not full is the last one.
            while let Ok(connection) = self.connection().await {
                let rows = sweep.run(&connection.client, &[&last]).await;
                let Some(row) = rows.ok().and_then(|mut rows| rows.pop()) else {
                    break;
                };
                last = row.get(0);
                sleep(Duration::from_millis(20)).await;
            }
            sleep(BETWEEN).await;
        }
    }

    /// Keeps the identity of the manager in the database, for as long as the manager lives.
    pub(super) async fn keep_card(&self, identity: Option<Arc<Identity>>) {
        let Some(identity) = identity else {
            return;
        };
        loop {
            let written = self.write_card(&identity).await;
            let pause = match written {
                Ok(()) => CARD_AGAIN,
                Err(_) => Duration::from_secs(5),
            };
            sleep(pause).await;
        }
    }

    async fn write_card(&self, identity: &Identity) -> Result<(), Failure> {
        let connection = self.connection().await?;
        let write = Sql::new(
            format!(
                "INSERT INTO lockkit.cell (key, rev, at, ends, doc) \
                 VALUES ($1, nextval('lockkit.revision'), {NOW}, {NOW} + {lasts}, $2) ON CONFLICT (key) \
                 DO UPDATE SET rev = excluded.rev, at = excluded.at, ends = excluded.ends, doc = excluded.doc",
                lasts = CARD.as_micros(),
            ),
            &[Type::BYTEA, Type::BYTEA],
        );
        let name = self.name(&format!("!h:{}", self.manager));
        let bytes = card_bytes(identity);
        let written = write.run(&connection.client, &[&name, &bytes]).await;
        written.map(drop).map_err(|error| failure(&error))
    }
}
