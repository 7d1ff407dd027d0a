//! Shows who holds locks and frees them: a web page, and commands for the terminal.
//!
//! Run it with `cargo run --example console`; `-- --help` lists the commands and the variables.
//!
//! Where to look: `web` has the routes, `origin` decides which requests may change something, `pages` and `cards` write
//! HTML, and `terminal` has the commands. `find` and `words` are shared by both.

mod cards;
mod config;
mod demo;
mod find;
mod html;
mod origin;
mod pages;
mod terminal;
#[cfg(test)]
mod tests;
mod web;
mod words;

use std::error::Error;
use std::process::ExitCode;

use lock_core::LockManager;

use crate::config::{Command, Config};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("console: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<ExitCode, Box<dyn Error>> {
    let config = match config::from_process() {
        Ok(config) => config,
        Err(mistake) => {
            eprintln!("console: {mistake}\n\n{}", config::HELP);
            return Ok(ExitCode::from(2));
        }
    };
    if config.command == Command::Help {
        println!("{}", config::HELP);
        return Ok(ExitCode::SUCCESS);
    }
    if config.store_url.is_none() && config.command != Command::Serve {
        return Err(
            "REDIS_URL names no Redis, and other processes' locks are not in this one".into(),
        );
    }
    let locks = connected(&config).await?;
    let operator = locks.operator(&config.operator);
    match &config.command {
        Command::Help => {}
        Command::Serve => web::serve(operator, &config).await?,
        Command::List(pattern) => terminal::list(&operator, pattern).await?,
        Command::Inspect(key) => terminal::inspect(&operator, key).await?,
        Command::Force(order) => return terminal::force(&operator, order).await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn connected(config: &Config) -> Result<LockManager, lock_core::Error> {
    let Some(url) = &config.store_url else {
        demo::start().await?;
        return LockManager::connect(demo::STORE).await;
    };
    let mut builder = LockManager::builder(url).label("console");
    if let Some(namespace) = &config.namespace {
        builder = builder.namespace(namespace);
    }
    builder.connect().await
}
