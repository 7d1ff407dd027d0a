//! Tests clients of other languages on the same keys as the kit, and makes the table of the guide.
//!
//! `tests/interop/run` installs the clients and starts this program. It runs each client in a process of its own, against
//! a redis-server of its own.

mod clients;
mod contention;
mod exclusion;
mod expiry;
mod extension;
mod foreign;
mod holder;
mod scripts;
mod several;
mod stage;
mod table;
mod waiting;

use std::env;
use std::process::ExitCode;

use clients::{CLIENTS, Client};
use table::Row;

/// The reason why a client failed, for the operator.
type Failure = String;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        // This program is also the process of a client, as the driver needs one.
        ["hold", url, namespace, ttl] => holder::hold(url, namespace, ttl).await,
        ["script", client, ports, lock] => scripts::work(client, ports, lock),
        ref arguments => drive(arguments).await,
    }
}

/// Runs the clients that the arguments name, or all of them.
async fn drive(arguments: &[&str]) -> ExitCode {
    let (options, names): (Vec<&str>, Vec<&str>) = arguments
        .iter()
        .partition(|argument| argument.starts_with("--"));
    let known = |name: &&str| CLIENTS.iter().any(|client| client.name == *name);
    if options.iter().any(|option| *option != "--write") || !names.iter().all(known) {
        let clients = CLIENTS.map(|client| client.name).join(" ");
        println!("usage: bash tests/interop/run [--write] [{clients}]");
        return ExitCode::from(2);
    }
    let chosen = |client: &&Client| names.is_empty() || names.contains(&client.name);
    let (mut rows, mut missing, mut failed) = (Vec::new(), false, false);
    for client in CLIENTS.iter().filter(chosen) {
        if !client.is_installed() {
            println!("{}: NOT RUN, it is not installed", client.name);
            missing = true;
            continue;
        }
        match row(client).await {
            Ok(row) => rows.push(row),
            Err(failure) => {
                println!("{}: FAILED: {failure}", client.name);
                failed = true;
            }
        }
    }
    println!("\n{}", table::markdown(&rows));
    if rows.len() == CLIENTS.len() && options.contains(&"--write") {
        table::write(&rows);
    }
    if !table::is_on_the_page(&rows) {
        println!("The page differs; `bash tests/interop/run --write` writes the table.");
        failed = true;
    }
    ExitCode::from(match (failed, missing) {
        (true, _) => 1,
        (false, true) => 3,
        (false, false) => 0,
    })
}

/// Runs all checks with one client.
async fn row(client: &'static Client) -> Result<Row, Failure> {
    let mut stage = stage::Stage::start(client).await?;
    exclusion::both_ways(&mut stage).await?;
    println!("{}: exclusion holds", client.name);
    let waiting = waiting::both_ways(&mut stage).await?;
    println!("{}: waiting: {waiting:?}", client.name);
    expiry::of_both(&mut stage).await?;
    expiry::late_releases(&mut stage).await?;
    println!("{}: expiry holds", client.name);
    let extension = extension::of_both(&mut stage).await?;
    println!("{}: extension: {extension:?}", client.name);
    let contention = contention::counted(&mut stage).await?;
    println!("{}: {contention}", client.name);
    if client.several {
        let contention = several::over_three(client).await?;
        println!("{}: over three servers, {contention}", client.name);
    }
    Ok(Row {
        client,
        version: stage.foreign.version.clone(),
        waiting,
        extension,
    })
}
