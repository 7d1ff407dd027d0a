//! Measures one hot key while a snapshot is open, which keeps the server from removing old rows.

use std::time::{Duration, Instant};

use lock_core::LockManager;
use lock_tests::SqlServer;
use tokio_postgres::{Client, NoTls};

use crate::machine;

const PART: Duration = Duration::from_secs(5);

pub(super) fn run(server: &SqlServer, short: bool) {
    server.sql("CREATE DATABASE other");
    let parts = if short { 2 } else { 12 };
    println!(
        "\n| PostgreSQL, one hot key, pairs/s in each {} s | first | | | last | table then |",
        PART.as_secs()
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let other = server.url_of("fast").replace("/postgres", "/other");
    machine::runtime().block_on(async {
        hot("no snapshot", server, None, parts).await;
        hot(
            "a snapshot open in the same database",
            server,
            Some(server.url()),
            parts,
        )
        .await;
        hot(
            "a snapshot open in another database",
            server,
            Some(&other),
            parts,
        )
        .await;
    });
}

async fn hot(name: &str, server: &SqlServer, snapshot: Option<&str>, parts: usize) {
    server.sql("VACUUM FULL lockkit.cell");
    let _snapshot = match snapshot {
        Some(url) => Some(open(url).await),
        None => None,
    };
    let locks = LockManager::connect(&server.url_of("fast"))
        .await
        .expect("a manager");
    let mut rates = Vec::new();
    for _ in 0..parts {
        let (begin, mut pairs) = (Instant::now(), 0);
        while begin.elapsed() < PART {
            let guard = locks.lock("hot").acquire().await.expect("free");
            guard.release().await.expect("held");
            pairs += 1;
        }
        rates.push(f64::from(pairs) / begin.elapsed().as_secs_f64());
    }
    let size = server.value("SELECT pg_total_relation_size('lockkit.cell') / 1024");
    let at = |part: usize| rates[part.min(parts - 1)];
    println!(
        "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {size} KB |",
        at(0),
        at(parts / 3),
        at(2 * parts / 3),
        at(parts - 1)
    );
}

/// Opens a snapshot, which lasts as long as its connection.
async fn open(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a server");
    tokio::spawn(connection);
    let begins = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class";
    client.batch_execute(begins).await.expect("a snapshot");
    client
}
