//! Sells the same stock in eight ways, and shows which of them sell more than there is.
//!
//! ```sh
//! cargo run --release --example inventory
//! DATABASE_URL=postgres://user@127.0.0.1/shop cargo run --release --example inventory --features postgres
//! DATABASE_URL=mysql://user@127.0.0.1/shop cargo run --release --example inventory --features mysql
//! ```
//!
//! The example prints a table and writes a picture. `--sellers`, `--stock`, `--work-ms` (the time between the read and
//! the write of a sale) and `--plot` (the file of the picture) change the run. The locks are in this process, in the
//! PostgreSQL of `DATABASE_URL`, or in the Redis of `REDIS_URL`. The eighth way is for a PostgreSQL that has both, the stock
//! and the locks. The tables `inventory_example_products` and `inventory_example_orders` are made anew and
//! dropped at the end.
//!
//! Each way runs twice. In the first run all sellers sell until nothing is left. In the second run one owner freezes
//! between its read and its write, for twice the ttl of the locks.
//!
//! # Which one to choose
//!
//! * **One atomic UPDATE**, if one statement does the whole job. It is the fastest way, and it has no owner that can
//!   freeze. A lock in front of it adds nothing.
//! * **A unique index**, if a result must exist at most once, such as one order per payment. It works for ever, also
//!   when all locks have ended. Use it in addition to any other way.
//! * **A version column**, if a value is read, changed and written back, and two writers seldom meet. Each refusal
//!   throws the work away, so it is a poor choice for work that is slow or that cannot be undone.
//! * **`SELECT … FOR UPDATE`**, if all work is inside one database and short. The row stays locked until the commit,
//!   so a frozen owner stops all others for as long as it lives, and each waiter occupies a connection. SQLite does
//!   not have the clause. There, `BEGIN IMMEDIATE` does the same for the whole file.
//! * **The lock with fencing**, if the work reaches beyond the database (a payment, a file, another service), is
//!   expensive, or must not be done twice at the same time. Waiters need no connection, and a frozen owner stops them
//!   for its ttl only. The database refuses its late write.
//! * **The lock, checked in the transaction**, if the locks are in the same PostgreSQL as the data. The late write of a
//!   frozen owner is refused without a column for tokens.
//! * **The lock alone**, if the resource cannot check a fencing token and a rare double run is harmless. It oversells
//!   after a freeze, as every lock does that ends by itself.
//! * **Read, then write** without any of these, never.

#![allow(
    clippy::disallowed_methods,
    reason = "an example measures by the real clock"
)]

mod config;
mod db;
mod freeze;
mod load;
mod market;
mod plot;
mod report;
mod seller;
#[path = "../wal.rs"]
mod wal;
mod ways;

use std::io::Write;
use std::time::Duration;

use self::config::Config;
use self::freeze::Freeze;
use self::load::Load;
use self::market::Market;
use self::report::Row;
use self::ways::Way;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

const FREEZE: Freeze = Freeze {
    ttl: Duration::from_millis(500),
    stock: 10,
};

fn main() -> Result<()> {
    let config = Config::read()?;
    let market = Market::new(config.database.clone(), config.redis_url.clone())?;
    let rows = sell_in_all_ways(&market, &config.load)?;
    config.database.drop_tables()?;

    let subtitle = config.subtitle();
    let mut out = std::io::stdout();
    writeln!(out, "{subtitle}\n\n{}", report::table(&rows))?;
    if !config.database.locks_rows() {
        let note = "SQLite has no SELECT … FOR UPDATE. BEGIN IMMEDIATE is its equivalent, for the whole file.";
        writeln!(out, "{note}")?;
    }
    let title = format!("The same stock, sold in {} ways", rows.len());
    std::fs::write(&config.plot, plot::svg(&title, &subtitle, &rows))?;
    writeln!(out, "The picture is in {}", config.plot.display())?;
    Ok(())
}

fn sell_in_all_ways(market: &Market, load: &Load) -> Result<Vec<Row>> {
    let sell = |way: Way| {
        Ok(Row {
            name: way.name(&market.database),
            load: load::run(market, way, load)?,
            freeze: freeze::run(market, way, &FREEZE)?,
        })
    };
    market.ways().map(sell).collect()
}

#[cfg(test)]
mod tests;
