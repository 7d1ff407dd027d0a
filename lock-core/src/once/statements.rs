//! All SQL of the kit.

use super::database::Dialect;

/// The migration for PostgreSQL 9.5 or later.
///
/// The table has no key, user or path in clear text. `operation` is an [`OperationId`](crate::OperationId), `run` the random number of
/// the run that has claimed it, `record` its answer, and `expires_at` the end of the record's life by the clock of the database.
///
/// A table that is partitioned by time cannot have a unique index on `operation` alone, so do not partition by time. Hash
/// partitions by `operation` are fine. The table must share the fate of the effects, so it must not be `UNLOGGED`.
pub const SCHEMA_POSTGRES: &str = "\
CREATE TABLE IF NOT EXISTS lockkit_once (
    operation  bytea PRIMARY KEY,
    run        bytea NOT NULL,
    record     bytea,
    expires_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS lockkit_once_expires_at ON lockkit_once (expires_at);
";

/// The migration for SQLite 3.35 or later. The columns are those of [`SCHEMA_POSTGRES`], and `expires_at` is in
/// milliseconds of Unix time.
pub const SCHEMA_SQLITE: &str = "\
CREATE TABLE IF NOT EXISTS lockkit_once (
    operation  BLOB NOT NULL PRIMARY KEY,
    run        BLOB NOT NULL,
    record     BLOB,
    expires_at INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS lockkit_once_expires_at ON lockkit_once (expires_at);
";

/// The number of records that one statement of a sweep deletes.
pub(super) const SWEPT_AT_ONCE: i64 = 1_000;

pub(super) struct Statements {
    pub(super) schema: &'static str,
    /// Has only one process at a time create the table. Two at once would collide in the database's catalogue.
    pub(super) schema_lock: Option<&'static str>,
    pub(super) begin: &'static str,
    /// `operation`. Returns the row while it lives.
    pub(super) peek: &'static str,
    /// `operation`, `run`, life in ms, and in PostgreSQL the number of an advisory lock. Changes a row if the claim is granted.
    pub(super) claim: &'static str,
    /// How many of these values it takes.
    pub(super) claim_values: usize,
    /// `operation`, `run`, life in ms, `record`. If the claim is gone, it fails in PostgreSQL, and changes no row in SQLite.
    pub(super) complete: &'static str,
    /// `operation`, `run`, life in ms. The same, without a record.
    pub(super) complete_without_record: &'static str,
    /// Fails if an earlier statement of the transaction has failed. In PostgreSQL, COMMIT would then roll back, and report no
    /// error.
    pub(super) sound: Option<&'static str>,
    /// `operation`, `run`. Deletes the claim of a run, or its record.
    pub(super) withdraw: &'static str,
    /// The largest number of rows to delete.
    pub(super) sweep: &'static str,
    /// Returns a row with advice, if a setting breaks the promise and no statement above notices.
    pub(super) advice: Option<&'static str>,
}

impl Dialect {
    pub(super) fn statements(self) -> &'static Statements {
        match self {
            Self::Postgres => &POSTGRES,
            Self::Sqlite => &SQLITE,
        }
    }
}

/// A life that is over begins anew: the work has taken longer. If it is not over, the indexed column keeps its value, so that the
/// indexes need no new entries.
macro_rules! postgres_completion {
    ($record:literal) => {
        concat!(
            "WITH done AS (UPDATE lockkit_once SET record = ",
            $record,
            ", expires_at = CASE WHEN expires_at > clock_timestamp() THEN expires_at \
             ELSE clock_timestamp() + $3::bigint * interval '1 millisecond' END \
             WHERE operation = $1 AND run = $2 RETURNING run) SELECT 1 / count(*) FROM done"
        )
    };
}

macro_rules! sqlite_completion {
    ($record:literal) => {
        concat!(
            "UPDATE lockkit_once SET record = ",
            $record,
            ", expires_at = CASE \
             WHEN expires_at > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) THEN expires_at \
             ELSE CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + ?3 END \
             WHERE operation = ?1 AND run = ?2"
        )
    };
}

/// `now()` is the begin of the transaction. `clock_timestamp()` is the present time, so a transaction that has waited does
/// not take over a record that was written meanwhile.
///
/// The advisory lock has a second claim refused at once, while the first one's transaction is open. Without it, the
/// `INSERT` would wait at the unique index for the end of that transaction. The unique index decides in any case.
///
/// A driver may send `begin` and `claim` at once, and `complete` and COMMIT. So `claim` changes nothing where `begin` has
/// failed: it would be a transaction of its own, which is not `DEFERRABLE`. (The word has no other effect on a transaction that
/// writes.) Behind a COMMIT of the body, `withdraw` changes nothing either: it would be a transaction of its own, and the next call
/// would do once more what is committed. And `complete` fails if the claim is gone, by a division by zero, so that COMMIT rolls
/// back.
const POSTGRES: Statements = Statements {
    schema: SCHEMA_POSTGRES,
    schema_lock: Some("SELECT pg_advisory_xact_lock(7813577064262595585)"),
    begin: "BEGIN DEFERRABLE",
    peek: "SELECT run, record FROM lockkit_once WHERE operation = $1 AND expires_at > clock_timestamp()",
    claim: "INSERT INTO lockkit_once AS o (operation, run, expires_at) \
            SELECT $1::bytea, $2::bytea, clock_timestamp() + $3::bigint * interval '1 millisecond' \
            WHERE current_setting('transaction_deferrable') = 'on' AND pg_try_advisory_xact_lock($4::bigint) \
            ON CONFLICT (operation) DO UPDATE \
            SET run = excluded.run, record = NULL, expires_at = excluded.expires_at \
            WHERE o.expires_at <= clock_timestamp()",
    claim_values: 4,
    complete: postgres_completion!("$4::bytea"),
    complete_without_record: postgres_completion!("NULL"),
    sound: Some("SELECT 1"),
    withdraw: "DELETE FROM lockkit_once WHERE operation = $1 AND run = $2 AND current_setting('transaction_deferrable') = 'on'",
    sweep: "DELETE FROM lockkit_once WHERE operation IN (\
            SELECT operation FROM lockkit_once WHERE expires_at <= clock_timestamp() \
            ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)",
    advice: Some(
        "SELECT convert_to(advice, 'UTF8'), NULL::bytea FROM pg_class, LATERAL (VALUES \
         (relpersistence <> 'p', 'a crash empties the table `lockkit_once`; ALTER TABLE lockkit_once SET LOGGED'), \
         (current_setting('default_transaction_deferrable') = 'on', 'a claim whose BEGIN fails is committed alone; \
         turn `default_transaction_deferrable` off for the user')) AS all_advice (is_wrong, advice) \
         WHERE pg_class.oid = 'lockkit_once'::regclass AND is_wrong LIMIT 1",
    ),
};

/// SQLite has one writer at a time, so it needs no advisory lock: `BEGIN IMMEDIATE` waits for the other writer.
const SQLITE: Statements = Statements {
    schema: SCHEMA_SQLITE,
    schema_lock: None,
    begin: "BEGIN IMMEDIATE",
    peek: "SELECT run, record FROM lockkit_once WHERE operation = ?1 \
           AND expires_at > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    claim: "INSERT INTO lockkit_once (operation, run, expires_at) \
            VALUES (?1, ?2, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + ?3) \
            ON CONFLICT (operation) DO UPDATE \
            SET run = excluded.run, record = NULL, expires_at = excluded.expires_at \
            WHERE lockkit_once.expires_at <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    claim_values: 3,
    complete: sqlite_completion!("?4"),
    complete_without_record: sqlite_completion!("NULL"),
    sound: None,
    withdraw: "DELETE FROM lockkit_once WHERE operation = ?1 AND run = ?2",
    sweep: "DELETE FROM lockkit_once WHERE operation IN (SELECT operation FROM lockkit_once \
            WHERE expires_at <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) \
            ORDER BY expires_at LIMIT ?1)",
    advice: None,
};
