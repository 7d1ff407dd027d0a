//! The table of the locks, and the number from which the writes count.

use tokio_postgres::Client;

use super::failure::{Class, class_of, code};
use super::statements::{NOW, first_text};
use crate::base::error::{Error, ErrorKind};
use crate::store::Failure;

/// The SQL that creates the table of the locks on PostgreSQL.
///
/// A manager runs it when it connects and the table is missing. Run it yourself, for example in a migration, if the role of
/// the application may not create a schema. The role then needs `USAGE` on the schema, `SELECT`, `INSERT`, `UPDATE` and
/// `DELETE` on the table, and `USAGE` and `UPDATE` on the sequence.
///
/// It is run once for each database, and has neither functions nor triggers. Run it again after a table was dropped only.
pub const POSTGRES_SCHEMA: &str = "\
CREATE SCHEMA IF NOT EXISTS lockkit;
CREATE SEQUENCE IF NOT EXISTS lockkit.revision;
CREATE TABLE IF NOT EXISTS lockkit.cell (
  key bytea PRIMARY KEY,
  rev bigint NOT NULL,
  at bigint NOT NULL,
  ends bigint NOT NULL,
  fence bigint,
  doc bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE lockkit.cell ALTER COLUMN doc SET STORAGE EXTERNAL;
";

/// The key of the row that says on which history of the database the numbers count.
const HISTORY: &str = "!history";
/// One process at a time sets up the table.
const SETUP: i64 = 0x6c6f_636b_6b69_7400;
/// By so much the numbers rise at a promotion. A standby that was promoted may lack as many writes of its primary.
const LOST: i64 = 1 << 24;
/// The numbers of a second, if there is one for each 64 microseconds.
const SECOND: i64 = 1_000_000 / super::PASSES.cast_signed();

/// Creates what is missing, and sees to it that the numbers of writes are above all that the database has ever given.
///
/// The numbers rise to the clock at each connection. No server does so many writes in a second that they overtake the clock. So a
/// dump or a disk of an earlier time gives no number twice. At a promotion the clock may be behind that of the old primary.
pub(super) async fn prepare(client: &Client) -> Result<(), Failure> {
    let kind = "SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass('lockkit.cell')";
    match first_text(client, kind).await?.as_deref() {
        None => create(client).await?,
        Some("p") => {}
        Some(_) => {
            return Err(Failure::misconfigured(
                "the table lockkit.cell is UNLOGGED, so a crash of the server empties it and a standby never has it; run ALTER \
                 TABLE lockkit.cell SET LOGGED",
            ));
        }
    }
    // A promotion begins another timeline.
    let now = "SELECT (SELECT system_identifier FROM pg_control_system()) || '/' || \
               left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)";
    let history = match first_text(client, now).await {
        Ok(history) => history.unwrap_or_default(),
        // A service of a cloud may withhold these functions. It then has no replicas of the usual kind.
        Err(failure) if failure.is_final() => String::new(),
        Err(failure) => return Err(failure),
    };
    let behind = format!(
        "coalesce((SELECT last_value FROM pg_sequences WHERE schemaname = 'lockkit' AND sequencename = 'revision'), 0) \
         < {NOW} / {} - {SECOND}",
        super::PASSES
    );
    let recorded = format!(
        "SELECT encode(doc, 'escape') FROM lockkit.cell WHERE key = '{HISTORY}' AND NOT ({behind})"
    );
    if first_text(client, &recorded).await?.as_deref() == Some(history.as_str()) {
        return Ok(());
    }
    let raise = alone(&format!(
        "SELECT setval('lockkit.revision', greatest(nextval('lockkit.revision') + lost, {NOW} / {passes})) \
         FROM (SELECT CASE WHEN EXISTS (SELECT FROM lockkit.cell WHERE key = '{HISTORY}' AND doc = '{history}') \
         THEN 0 ELSE {LOST} END AS lost) AS it WHERE lost > 0 OR {behind}; \
         INSERT INTO lockkit.cell AS c (key, rev, at, ends, doc) VALUES ('{HISTORY}', 1, {NOW}, {never}, '{history}') \
         ON CONFLICT (key) DO UPDATE SET doc = excluded.doc WHERE c.doc <> excluded.doc;",
        passes = super::PASSES,
        never = i64::MAX,
    ));
    Ok(client.batch_execute(&raise).await?)
}

/// One process at a time runs these statements.
fn alone(statements: &str) -> String {
    format!("BEGIN; SELECT pg_advisory_xact_lock({SETUP}); {statements} COMMIT")
}

async fn create(client: &Client) -> Result<(), Failure> {
    match client.batch_execute(&alone(POSTGRES_SCHEMA)).await {
        Ok(()) => Ok(()),
        Err(error) if class_of(code(&error)) == Class::Final => {
            let message = format!(
                "the table of the locks is missing in the database, and the role of the URL may not create it; run this SQL as \
                 an owner of the database, and grant the role USAGE on the schema, SELECT, INSERT, UPDATE and DELETE on the \
                 table, and USAGE and UPDATE on the sequence (`lock_core::POSTGRES_SCHEMA`):\n{POSTGRES_SCHEMA}"
            );
            Err(Error::new(ErrorKind::Misconfigured, message).into())
        }
        Err(error) => Err(error.into()),
    }
}
