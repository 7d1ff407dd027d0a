//! The effect of a message: a mail in an outbox.

use lock_core::idempotent;
use lock_core::once::Tx;

use crate::Failure;
use crate::queue::Message;
use crate::sqlite::Sqlite;

/// No column is unique, so the table would take two mails for one message.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS mails
    (number INTEGER PRIMARY KEY, message INTEGER NOT NULL, recipient TEXT NOT NULL)";

pub(crate) async fn create_table(db: &Sqlite) -> Result<(), Failure> {
    let tx = Tx::begin(db).await?;
    tx.execute_batch(SCHEMA)?;
    Ok(tx.commit().await?)
}

/// Writes the mail of a message, and returns its number. If an earlier delivery has written it, the body does not run.
///
/// The caller commits the mail and the number together.
#[idempotent(key = "mail:<message.id>", remember = "7d", tx = tx)]
pub(crate) async fn write(tx: &mut Tx<Sqlite>, message: &Message) -> Result<i64, Failure> {
    tx.execute(
        "INSERT INTO mails (message, recipient) VALUES (?1, ?2)",
        (message.id, &message.recipient),
    )?;
    Ok(tx.last_insert_rowid())
}

/// Returns the number of messages that have taken effect, and the number of mails.
pub(crate) async fn count(db: &Sqlite) -> Result<(i64, i64), Failure> {
    let tx = Tx::begin(db).await?;
    let counts = tx.query_row(
        "SELECT count(DISTINCT message), count(*) FROM mails",
        (),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    tx.commit().await?;
    Ok(counts)
}
