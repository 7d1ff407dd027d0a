//! Work in the background: rows that are over.

use std::time::Duration;

use tokio_postgres::types::Type;

use super::PostgresCells;
use super::statements::{NOW, Sql, UNSYNCED};
use crate::base::machine::sleep;

/// A row is kept for so long after its end. A key that comes again stays in its page, and no first write is late.
const KEPT: Duration = Duration::from_secs(60);
/// The pause between two looks at all rows.
const BETWEEN: Duration = Duration::from_secs(20);
/// The rows of one look.
const PAGE: i64 = 1_000;
/// One manager at a time looks.
const SWEEP: i64 = 0x6c6f_636b_6b69_7401;
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
            while let Ok(rows) = self.ask(&sweep, &[&last]).await
                && let Some(row) = rows.first()
            {
                last = row.get(0);
                sleep(Duration::from_millis(20)).await;
            }
            sleep(BETWEEN).await;
        }
    }
}
