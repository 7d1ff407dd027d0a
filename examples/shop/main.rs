//! Runs a small shop, an axum service on SQLite, that takes one order for a double click.
//!
//! Its web page shows one order flow with the kit and without. Run it with `cargo run --example
//! shop`; `-- --help` lists the options.
//!
//! Where to look: `app` has the routes and the lock layer, `orders` the two functions under the
//! attribute, `transfers` one under a lock of two keys, `catalogue` a reader and its writer, `exports`
//! the work behind five permits, `charges` an effect and its answer in one commit, `checkout` the code of both lanes, `db`
//! the statement that checks the fence, and `nights` the job that one of all processes runs at the end of a day.

mod app;
mod auth;
mod catalogue;
mod charges;
mod checkout;
mod config;
mod cors;
mod db;
mod error;
mod exports;
mod freeze;
mod kill;
mod lifeline;
mod lose;
mod metrics;
mod nights;
mod orders;
mod page;
mod pair;
mod plain;
mod pool;
mod redis_server;
mod serve;
#[path = "../shutdown.rs"]
mod shutdown;
#[path = "../sqlite.rs"]
mod sqlite;
mod transfers;
mod views;
#[path = "../wal.rs"]
mod wal;

use std::error::Error;
use std::process::ExitCode;

use crate::config::Command;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shop: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    match config::from_process()? {
        Command::Help => {
            println!("{}", config::HELP);
            Ok(())
        }
        Command::Serve(config) => serve::alone(config).await,
        Command::Pair(config) => pair::run(config).await,
        Command::Child(config) => serve::as_child(config).await,
        Command::Redis(program) => redis_server::keep(&program).await,
    }
}
