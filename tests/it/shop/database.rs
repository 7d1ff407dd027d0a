//! Tests two processes of the shop whose locks are in a PostgreSQL, and the console beside them.

use std::process::Command;

use lock_core::LockManager;
use lock_tests::{ShopProcess, SqlServer, example, needs, wait};
use tokio::join;

use super::pair::ports;
use super::{buy, by_status, code, orders};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_click_on_each_of_two_processes_places_one_order_by_locks_in_a_postgresql() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let options = ShopProcess::options().arg("--pair");
    let pair = options.env("DATABASE_URL", server.url()).start();
    let [one, other] = ports(&pair);
    let (placed, refused) = join!(buy(one, "ada"), buy(other, "ada"));
    let (placed, refused) = by_status(placed, refused);
    assert_eq!((placed.status, refused.status), (201, 409), "{refused:?}");
    assert_eq!(code(&refused), "lock_busy");
    assert_eq!(orders(one, "mug").await.len(), 1);
}

#[tokio::test]
async fn the_console_lists_the_locks_of_a_postgresql() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let locks = LockManager::builder(server.url()).label("checkout");
    let locks = locks.connect().await.expect("a manager");
    let _guard = locks.lock("order:42").acquire().await.expect("free");
    let mut command = Command::new(example("console"));
    command
        .env_remove("REDIS_URL")
        .env("DATABASE_URL", server.url())
        .args(["list", "order:*"]);
    let mut listed = String::new();
    // The identity of the process is written beside its first lock.
    wait::eventually("the lock is listed with its process", async || {
        let output = command.output().expect("the console starts");
        listed = String::from_utf8_lossy(&output.stdout).into_owned();
        listed.contains("order:42\theld\t") && listed.contains("checkout")
    })
    .await;
    assert_eq!(listed.lines().count(), 1, "{listed}");
}
