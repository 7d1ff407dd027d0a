//! A worker that takes messages from a queue and lets each take effect once, although some are delivered twice.
//!
//! A queue delivers a message at least once: it delivers the message again if its worker ends before the acknowledgement, and a
//! sender that got no answer sends it again. So `mail::write` has the attribute `#[idempotent]`, which writes a record of the
//! message in the transaction of the effect. A second delivery finds the record, and the effect is not repeated. No lock is
//! needed, and no unique column in the table of effects.
//!
//! The queue is a table in SQLite here, and the effect is a row in an outbox of mails, which a job would send.
//!
//! ```sh
//! cargo run --example consumer               # some messages are delivered twice
//! cargo run --example consumer -- --kill     # the worker ends between the effect and the acknowledgement
//! cargo run --example consumer               # the message is delivered again
//! ```
//!
//! Start as many workers at once as you like. `CONSUMER_DB` names the SQLite file, by default one in the folder of temporary files.

mod mail;
mod queue;
#[path = "../sqlite.rs"]
mod sqlite;
#[path = "../wal.rs"]
mod wal;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use lock_core::once::{self, Tx};
use rusqlite::Connection;

use crate::queue::Message;
use crate::sqlite::Sqlite;

/// Any error of the worker: of SQLite, or of the kit.
type Failure = Box<dyn Error + Send + Sync>;

/// The delivery at which `--kill` ends the worker. One was acknowledged before it, and others are left.
const KILLED_AT: usize = 2;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let kills = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--kill") => true,
        Some(other) => return Err(format!("unknown argument {other:?}; try --kill").into()),
    };
    let db = Sqlite::new(connect(&file())?);
    once::create_table(&db).await?;
    mail::create_table(&db).await?;
    queue::create_table(&db).await?;
    queue::fill(&db).await?;

    let mut deliveries = 0;
    while let Some(delivery) = queue::next(&db).await? {
        deliveries += 1;
        match handle(&db, &delivery.message).await {
            Ok(mail) => println!("{delivery}: its mail is number {mail}"),
            Err(error) => {
                // It is unknown whether the message took effect. The next delivery finds out.
                eprintln!("{delivery}: not acknowledged: {error}");
                continue;
            }
        }
        if kills && deliveries == KILLED_AT {
            println!("the worker is killed before it acknowledges this delivery; run it again");
            process::abort();
        }
        queue::acknowledge(&db, &delivery).await?;
    }
    let (messages, mails) = mail::count(&db).await?;
    println!("the queue is empty: {messages} messages, {mails} mails");
    if messages != mails {
        return Err("a message has taken effect twice".into());
    }
    Ok(())
}

/// Commits the effect of a message together with the record that the message is done.
async fn handle(db: &Sqlite, message: &Message) -> Result<i64, Failure> {
    let mut tx = Tx::begin(db).await?;
    let mail = mail::write(&mut tx, message).await?;
    tx.commit().await?;
    Ok(mail)
}

fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    // Other workers write, too.
    connection.busy_timeout(Duration::from_secs(5))?;
    wal::switch_to_wal(&connection)?;
    Ok(connection)
}

fn file() -> PathBuf {
    let named = std::env::var_os("CONSUMER_DB").map(PathBuf::from);
    named.unwrap_or_else(|| std::env::temp_dir().join("lock-consumer.sqlite"))
}
