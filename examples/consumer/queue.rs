//! A queue that delivers each message at least once.
//!
//! A worker takes a message for a while. If it has not acknowledged the message by then, the queue delivers it again.

use std::fmt;
use std::time::Duration;

use lock_core::once::Tx;
use rusqlite::{OptionalExtension, params};

use crate::Failure;
use crate::sqlite::Sqlite;

/// The time in which a worker must acknowledge a message.
const TAKEN_FOR_MS: i64 = 2_000;

/// The pause before the next look at a queue whose messages are all taken.
const PAUSE: Duration = Duration::from_millis(100);

/// The recipients of new messages. The sender of every other one gets no answer, and sends it again.
const RECIPIENTS: [&str; 5] = ["ada", "ben", "cleo", "dan", "eve"];

/// The times are in ms of Unix time by SQLite's clock.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS queue (
    place       INTEGER PRIMARY KEY AUTOINCREMENT,
    message     INTEGER NOT NULL,
    recipient   TEXT NOT NULL,
    deliveries  INTEGER NOT NULL DEFAULT 0,
    taken_until INTEGER NOT NULL DEFAULT 0
)";

const TAKE: &str = "
UPDATE queue SET deliveries = deliveries + 1, taken_until = unixepoch('subsec') * 1000 + ?1
WHERE place = (SELECT min(place) FROM queue WHERE taken_until <= unixepoch('subsec') * 1000)
RETURNING place, message, recipient, deliveries";

pub(crate) struct Message {
    /// The same in all deliveries, also if the sender has sent it twice.
    pub(crate) id: i64,
    pub(crate) recipient: String,
}

pub(crate) struct Delivery {
    pub(crate) message: Message,
    place: i64,
    /// The number of times that the queue has delivered this place.
    count: u32,
}

pub(crate) async fn create_table(db: &Sqlite) -> Result<(), Failure> {
    let tx = Tx::begin(db).await?;
    tx.execute_batch(SCHEMA)?;
    Ok(tx.commit().await?)
}

/// Sends new messages, some of them twice, if the queue is empty.
pub(crate) async fn fill(db: &Sqlite) -> Result<(), Failure> {
    let tx = Tx::begin(db).await?;
    let (waiting, last): (i64, i64) = tx.query_row(
        "SELECT (SELECT count(*) FROM queue), (SELECT coalesce(max(message), 0) FROM mails)",
        (),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if waiting == 0 {
        for (id, recipient) in (last + 1..).zip(RECIPIENTS) {
            let times = if id % 2 == 0 { 2 } else { 1 };
            for _ in 0..times {
                tx.execute(
                    "INSERT INTO queue (message, recipient) VALUES (?1, ?2)",
                    params![id, recipient],
                )?;
            }
        }
    }
    Ok(tx.commit().await?)
}

/// Takes the next message, or waits until one may be delivered again. `None`: the queue is empty.
pub(crate) async fn next(db: &Sqlite) -> Result<Option<Delivery>, Failure> {
    loop {
        let tx = Tx::begin(db).await?;
        let taken = tx.query_row(TAKE, [TAKEN_FOR_MS], |row| {
            let (id, recipient) = (row.get(1)?, row.get(2)?);
            Ok(Delivery {
                message: Message { id, recipient },
                place: row.get(0)?,
                count: row.get(3)?,
            })
        });
        let taken = taken.optional()?;
        let left: i64 = tx.query_row("SELECT count(*) FROM queue", (), |row| row.get(0))?;
        tx.commit().await?;
        if taken.is_some() || left == 0 {
            return Ok(taken);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Removes a delivered message. The work is done, so a late acknowledgement does no harm.
pub(crate) async fn acknowledge(db: &Sqlite, delivery: &Delivery) -> Result<(), Failure> {
    let tx = Tx::begin(db).await?;
    tx.execute("DELETE FROM queue WHERE place = ?1", [delivery.place])?;
    Ok(tx.commit().await?)
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Message { id, recipient } = &self.message;
        write!(f, "message {id} to {recipient}")?;
        match self.count {
            1 => Ok(()),
            count => write!(f, ", delivery {count}"),
        }
    }
}
