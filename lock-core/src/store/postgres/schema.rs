//! The table of the locks, and the number from which the writes count.

use tokio_postgres::Client;

use super::failure::{Class, class_of, code};
use super::statements::NOW;
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

/// Creates what is missing, and sees to it that the numbers of writes are above all that the database has ever given.
pub(super) async fn prepare(client: &Client) -> Result<(), Failure> {
    let kind = "SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass('lockkit.cell')";
    match text(client, kind).await?.as_deref() {
        None => create(client).await?,
        Some("p") => {}
        Some(_) => {
            return Err(Failure::misconfigured(
                "the table lockkit.cell is UNLOGGED, so a crash of the server empties it and a standby never has it; run ALTER \
                 TABLE lockkit.cell SET LOGGED",
            ));
        }
    }
    // A promotion begins another timeline, and a database that was restored has another identity, or another timeline too.
    let now = "SELECT (SELECT system_identifier FROM pg_control_system()) || '/' || \
               left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)";
    let history = match text(client, now).await {
        Ok(history) => history.unwrap_or_default(),
        // A service of a cloud may withhold these functions. It then has no replicas of the usual kind.
        Err(failure) if failure.is_final() => return Ok(()),
        Err(failure) => return Err(failure),
    };
    let recorded =
        format!("SELECT encode(doc, 'escape') FROM lockkit.cell WHERE key = '{HISTORY}'");
    if text(client, &recorded).await?.as_deref() == Some(history.as_str()) {
        return Ok(());
    }
    let raise = alone(&format!(
        "SELECT setval('lockkit.revision', greatest(nextval('lockkit.revision') + {LOST}, {NOW} / {passes})) \
         WHERE NOT EXISTS (SELECT FROM lockkit.cell WHERE key = '{HISTORY}' AND doc = '{history}'); \
         INSERT INTO lockkit.cell (key, rev, at, ends, doc) VALUES ('{HISTORY}', 1, {NOW}, {never}, '{history}') \
         ON CONFLICT (key) DO UPDATE SET doc = excluded.doc;",
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

/// The first column of the first row, without a prepared statement.
async fn text(client: &Client, query: &str) -> Result<Option<String>, Failure> {
    let rows = client.query_typed(query, &[]).await?;
    let first = rows.first().map(|row| row.try_get(0));
    first.transpose().map_err(|_| Failure::not_understood())
}
