//! All SQL of the store, but that of the schema and of the audit.
//!
//! The time is that of `clock_timestamp()`: the time of the transaction may be long over when a row is written.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};

use crate::store::Failure;

/// The clock of the server in microseconds of Unix time.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
/// The last column of a statement that gives no key to anybody. It need not wait for the disk.
pub(super) const UNSYNCED: &str = "set_config('synchronous_commit', 'off', true)";

pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A statement with the types of its parameters.
pub(super) struct Sql {
    text: String,
    types: Vec<Type>,
    /// Where the connection is not that of a pooler.
    prepared: Option<Statement>,
}

impl Sql {
    pub(super) fn new(text: impl Into<String>, types: &[Type]) -> Self {
        Self {
            text: text.into(),
            types: types.to_vec(),
            prepared: None,
        }
    }

    pub(super) async fn prepare(&mut self, client: &Client) -> Result<(), Error> {
        self.prepared = Some(client.prepare_typed(&self.text, &self.types).await?);
        Ok(())
    }

    /// Runs the statement in one round trip.
    pub(super) async fn run(&self, client: &Client, params: Params<'_>) -> Result<Vec<Row>, Error> {
        match &self.prepared {
            Some(statement) => client.query(statement, params).await,
            None => {
                let types = params.iter().copied().zip(self.types.iter().cloned());
                client
                    .query_typed(&self.text, &types.collect::<Vec<_>>())
                    .await
            }
        }
    }
}

/// The first column of the first row, without a prepared statement.
pub(super) async fn first_text(client: &Client, query: &str) -> Result<Option<String>, Failure> {
    let rows = client.query_typed(query, &[]).await?;
    let first = rows.first().map(|row| row.try_get(0));
    first.transpose().map_err(|_| Failure::not_understood())
}

/// The types of the parameters of [`swap`].
const SWAP: [Type; 13] = [
    Type::BYTEA_ARRAY,
    Type::INT8_ARRAY,
    Type::BYTEA_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8,
    Type::BOOL,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
];

/// The statements of one connection.
pub(super) struct Statements {
    /// Swaps that end no hold. They pass by a transaction that checks the key.
    pub(super) keeping: Sql,
    /// Swaps that may end one.
    pub(super) ending: Sql,
    /// Swaps that are done together, or fail by a division by zero.
    pub(super) together: Sql,
    /// The clock in the first row, and one row for each key.
    pub(super) read: Sql,
    pub(super) notify: Sql,
}

impl Statements {
    pub(super) fn new() -> Self {
        let swap = |how| Sql::new(swap(how), &SWAP);
        Self {
            keeping: swap(How::Keeping),
            ending: swap(How::Ending),
            together: swap(How::Together),
            read: Sql::new(
                format!(
                    "SELECT NULL::bigint, NULL::bigint, NULL::bytea, {NOW}, 0::bigint AS i UNION ALL \
                     SELECT c.rev, c.at, c.doc, NULL, w.i FROM unnest($1::bytea[]) WITH ORDINALITY AS w(key, i) \
                     LEFT JOIN lockkit.cell c USING (key) ORDER BY i"
                ),
                &[Type::BYTEA_ARRAY],
            ),
            notify: Sql::new(
                format!(
                    "SELECT pg_notify(p.channel, p.message), {UNSYNCED} \
                     FROM unnest($1::text[], $2::text[]) AS p(channel, message)"
                ),
                &[Type::TEXT_ARRAY, Type::TEXT_ARRAY],
            ),
        }
    }

    pub(super) fn each(&mut self) -> [&mut Sql; 5] {
        [
            &mut self.keeping,
            &mut self.ending,
            &mut self.together,
            &mut self.read,
            &mut self.notify,
        ]
    }
}

/// A way of swapping.
#[derive(Clone, Copy)]
enum How {
    /// Each swap for itself, and none ends a hold.
    Keeping,
    /// Each swap for itself.
    Ending,
    /// All swaps or none.
    Together,
}

/// Swaps: $1 keys, $2 numbers of the writes before, $3 documents, $4 ends by the clock, $5 ends counted from the write,
/// $6 fencing tokens (-1: none, 0: that of this write), $7 and $8 the receivers that must listen, with the places of their
/// swaps, $9 when the first write of a key is too late, $10 whether the writes may be lost, $11 what the writer takes for the
/// time, $12 when something is over that the writer has seen, $13 times of the writes before.
///
/// A row that another process has locked is passed over, so that one key never keeps the others of a manager waiting. The
/// number of a write is taken when its row is locked, so the numbers of a key rise.
///
/// The sequence forgets its last numbers with the commits that a crash loses, so the write before is known by its time, too.
fn swap(how: How) -> String {
    let strength = match how {
        How::Keeping => "NO KEY UPDATE",
        How::Ending | How::Together => "UPDATE",
    };
    let (next, now, above, gate, failing) = match how {
        How::Keeping | How::Ending => ("nextval('lockkit.revision')", NOW, "true", "true", ""),
        How::Together => (
            "(SELECT next FROM one)",
            "(SELECT now FROM one)",
            // Another write may have taken a higher number while this one waited.
            "c.rev < (SELECT next FROM one)",
            "(SELECT count(*) FROM found) + (SELECT count(*) FROM fresh) = cardinality($1)",
            // Where an insert came too late after all, the whole statement fails.
            "UNION ALL SELECT 3, 1 / (count(*) = cardinality($1))::int, 0, 0, NULL, 0, NULL FROM done HAVING count(*) > 0",
        ),
    };
    let passes = super::PASSES;
    let fence =
        format!("CASE f.fence WHEN -1 THEN NULL WHEN 0 THEN f.next * {passes} ELSE f.fence END");
    let ends = "greatest(f.ends, CASE f.lasts WHEN 0 THEN 0 ELSE f.now + f.lasts END)";
    format!(
        "WITH want AS MATERIALIZED (\
            SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], \
            $11::bigint[], $12::bigint[], $13::bigint[]) \
            WITH ORDINALITY AS w(key, rev, doc, ends, lasts, fence, since, until, at, i)\
        ), one AS MATERIALIZED (\
            SELECT nextval('lockkit.revision') AS next, {NOW} AS now\
        ), deaf AS MATERIALIZED (\
            SELECT e.i, e.ear FROM unnest($7::bigint[], $8::bigint[]) AS e(i, ear) \
            WHERE pg_try_advisory_xact_lock_shared(e.ear)\
        ), found AS MATERIALIZED (\
            SELECT w.*, c.old, {next} AS next, {now} AS now FROM want w, LATERAL (\
                SELECT c.rev AS old FROM lockkit.cell c \
                WHERE c.key = w.key AND {above} \
                AND (c.rev = w.rev AND c.at = w.at AND w.since <= {NOW} AND {NOW} < w.until \
                OR w.rev = 0 AND c.ends <= {NOW} AND {NOW} < $9) \
                FOR {strength} SKIP LOCKED\
            ) c WHERE NOT EXISTS (SELECT FROM deaf d WHERE d.i = w.i)\
        ), fresh AS MATERIALIZED (\
            SELECT w.*, {next} AS next, {now} AS now FROM want w \
            WHERE w.rev = 0 AND {NOW} < $9 AND NOT EXISTS (SELECT FROM lockkit.cell c WHERE c.key = w.key) \
            AND NOT EXISTS (SELECT FROM deaf d WHERE d.i = w.i)\
        ), changed AS (\
            UPDATE lockkit.cell c SET rev = f.next, at = f.now, ends = {ends}, fence = {fence}, doc = f.doc \
            FROM found f WHERE c.key = f.key AND c.rev = f.old AND {gate} RETURNING f.i, c.rev, c.at\
        ), added AS (\
            INSERT INTO lockkit.cell (key, rev, at, ends, fence, doc) \
            SELECT f.key, f.next, f.now, {ends}, {fence}, f.doc FROM fresh f WHERE {gate} \
            ON CONFLICT (key) DO NOTHING RETURNING key, rev, at\
        ), done AS (\
            SELECT i, rev, at FROM changed UNION ALL SELECT w.i, a.rev, a.at FROM added a JOIN want w USING (key)\
        ) SELECT 0, i, rev, at, NULL::bytea, {NOW}, CASE WHEN $10 THEN {UNSYNCED} END FROM done \
        UNION ALL SELECT 1, i, ear, 0, NULL, 0, NULL FROM deaf \
        UNION ALL SELECT 2, w.i, c.rev, c.at, c.doc, {NOW}, NULL FROM want w LEFT JOIN lockkit.cell c USING (key) \
        WHERE NOT EXISTS (SELECT FROM done d WHERE d.i = w.i) AND NOT EXISTS (SELECT FROM deaf d WHERE d.i = w.i) {failing}"
    )
}
