//! The effect of a message: a mail in an outbox.

use std::error::Error;
use std::time::Duration;

use lock_core::OperationId;
use lock_core::once::{Claim, Claimed, Tx};

use crate::queue::Message;
use crate::sqlite::Sqlite;

/// No queue delivers a message again after this time.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// No column is unique, so the table would take two mails for one message.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS mails
    (number INTEGER PRIMARY KEY, message INTEGER NOT NULL, recipient TEXT NOT NULL)";

pub(crate) async fn create_table(db: &Sqlite) -> Result<(), Box<dyn Error>> {
    let tx = Tx::begin(db).await?;
    tx.execute_batch(SCHEMA)?;
    Ok(tx.commit().await?)
}

/// Writes the mail of a message, and returns its number. If an earlier delivery has written it, the number is that of the
/// earlier mail.
///
/// The caller commits the mail and its record together.
pub(crate) async fn write(tx: &mut Tx<Sqlite>, message: &Message) -> Result<i64, Box<dyn Error>> {
    let operation = OperationId::new("mail", [message.id.to_string().as_str()]);
    let claim = Claim::new(operation, REMEMBERED)?;
    match tx.claim(&claim).await? {
        Claimed::Granted => {}
        Claimed::Recorded(found) => {
            let record = found.record.ok_or("a record without its number")?;
            return Ok(std::str::from_utf8(&record)?.parse()?);
        }
        // An error acknowledges nothing, so the message is delivered again.
        _ => return Err("another worker has the message in work".into()),
    }
    tx.execute(
        "INSERT INTO mails (message, recipient) VALUES (?1, ?2)",
        (message.id, &message.recipient),
    )?;
    let number = tx.last_insert_rowid();
    tx.complete(&claim, Some(number.to_string().as_bytes()))
        .await?;
    Ok(number)
}

/// Returns the number of messages that have taken effect, and the number of mails.
pub(crate) async fn count(db: &Sqlite) -> Result<(i64, i64), Box<dyn Error>> {
    let tx = Tx::begin(db).await?;
    let counts = tx.query_row(
        "SELECT count(DISTINCT message), count(*) FROM mails",
        (),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    tx.commit().await?;
    Ok(counts)
}
