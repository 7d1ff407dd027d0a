//! A small shop that cannot be double-clicked: an axum service on SQLite, with a web page that
//! shows one order flow without and with the kit. `cargo run --example shop`, or `-- --help`.
//!
//! Where to look: `app` has the routes and the lock layer, `orders` the two functions under the
//! attribute, `checkout` what both lanes run, `db` the one statement that checks the fence.

mod app;
mod auth;
mod checkout;
mod config;
mod cors;
mod db;
mod error;
mod freeze;
mod lifeline;
mod orders;
mod page;
mod pair;
mod plain;
mod pool;
mod redis_server;
mod serve;
mod shutdown;
mod temp;
mod views;

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
        Command::Redis => redis_server::keep().await,
    }
}
