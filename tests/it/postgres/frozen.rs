//! Tests owners that are frozen (SIGSTOP) between their last look at the lock and their write, until another owner has
//! written. `LOCK_TESTS_FREEZES` sets the number of freezes.
//!
//! A late write is one behind the write of the next owner. The writes of both are in one row, which has no column for a
//! fencing token: only the check of the lock in the transaction can stop them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lock_core::Wait;
use lock_tests::{ChildProcess, SqlServer, needs};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use super::{long, manager, setting};
use crate::dice::Dice;

const URL: &str = "LOCK_TESTS_POSTGRES_OF_THE_FROZEN";
const FOLDER: &str = "LOCK_TESTS_FOLDER_OF_THE_FROZEN";
const MODE: &str = "LOCK_TESTS_MODE_OF_THE_FROZEN";

/// The owners of a test, each with a key and a row of its own.
const OWNERS: u64 = 4;

/// The place at which an owner is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    BeforeTheTransaction,
    BehindTheCheck,
    BehindTheWrite,
}

impl Place {
    const ALL: [Place; 3] = [
        Place::BeforeTheTransaction,
        Place::BehindTheCheck,
        Place::BehindTheWrite,
    ];
}

fn ttl() -> Duration {
    Duration::from_millis(300)
}

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a server");
    tokio::spawn(connection);
    client
}

/// Stands still until the test has made the file of this round, which it does while this process is frozen.
fn freezes(folder: &Path, round: u64) {
    println!("\nready {round}");
    while !folder.join(format!("go-{round}")).exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Writes in each round under the lock, without another look at it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that another test starts"]
async fn writes_late() {
    let Ok(url) = std::env::var(URL) else { return };
    let folder = PathBuf::from(std::env::var(FOLDER).expect("a folder"));
    let mode = std::env::var(MODE).expect("a mode");
    let (number, checks) = mode.split_once(' ').expect("two words");
    let (key, checks) = (format!("account:{number}"), checks == "checked");
    let mut dice = Dice::of(&[number.parse().expect("a number")]);
    for round in 0.. {
        let place = dice.one_of(&Place::ALL);
        let halts = |here| {
            if place == here {
                freezes(&folder, round);
            }
        };
        // The server may have ended the connections of a process that stood still.
        let (locks, client) = (manager(&url).await, client(&url).await);
        let request = locks.lock(key.clone()).ttl(ttl()).wait(Wait::Forever);
        let guard = request.acquire().await.expect("its turn");
        let fence: i64 = guard.fencing_token().into();
        let writes = async {
            halts(Place::BeforeTheTransaction);
            client.batch_execute("BEGIN").await.ok()?;
            if checks {
                let found = client
                    .query_opt(guard.check_sql().expect("on PostgreSQL"), &[&key, &fence])
                    .await;
                found.ok()??;
            }
            halts(Place::BehindTheCheck);
            let sql = "INSERT INTO written (account, fence) VALUES ($1, $2)";
            client.execute(sql, &[&key, &fence]).await.ok()?;
            halts(Place::BehindTheWrite);
            client.batch_execute("COMMIT").await.ok()
        };
        let written = writes.await.is_some();
        println!(
            "\ndone {round} {}",
            if written { "written" } else { "refused" }
        );
        drop(guard);
    }
}

/// An owner that is frozen again and again, and the next owner of its lock.
struct Frozen {
    process: ChildProcess,
    folder: TempDir,
    key: String,
}

impl Frozen {
    fn start(server: &SqlServer, number: u64, mode: &str) -> Frozen {
        let folder = tempfile::tempdir().expect("a folder");
        let variables = [
            (URL, server.url()),
            (FOLDER, folder.path().to_str().expect("a name")),
            (MODE, &format!("{number} {mode}")),
        ];
        Frozen {
            process: ChildProcess::of_test("postgres::frozen::writes_late", &variables),
            folder,
            key: format!("account:{number}"),
        }
    }

    /// Freezes the owner once, and has the next one write meanwhile.
    async fn round(&self, url: &str, round: u64) {
        let says = |words: String| tokio::task::block_in_place(|| self.process.tells(&words));
        says(format!("ready {round}"));
        self.process.stop();
        let (locks, mut client) = (manager(url).await, client(url).await);
        let request = locks.lock(self.key.clone()).ttl(long()).wait(Wait::Forever);
        let guard = request.acquire().await.expect("the lease runs out");
        let fence: i64 = guard.fencing_token().into();
        let tx = client.transaction().await.expect("a transaction");
        let found = tx
            .query_opt(
                guard.check_sql().expect("on PostgreSQL"),
                &[&self.key, &fence],
            )
            .await;
        assert!(
            found.expect("an answer").is_some(),
            "a live owner has its row"
        );
        let sql = "INSERT INTO written (account, fence) VALUES ($1, $2)";
        tx.execute(sql, &[&self.key, &fence])
            .await
            .expect("written");
        tx.commit().await.expect("a commit");
        guard.release().await.expect("held");
        std::fs::write(self.folder.path().join(format!("go-{round}")), "").expect("a file");
        self.process.cont();
        says(format!("done {round}"));
    }
}

/// Returns how many writes came behind one of a later owner, of so many freezes.
async fn late_writes(freezes: u64, mode: &'static str) -> u64 {
    // A frozen owner that is inside of its transaction keeps the next one out until the server ends the transaction.
    let server = SqlServer::postgres_with(&[
        "fsync=off",
        "max_connections=300",
        "track_commit_timestamp=on",
        "idle_in_transaction_session_timeout=400",
    ]);
    server.sql("CREATE TABLE written (account text, fence bigint)");
    manager(server.url()).await;
    let rounds = freezes.div_ceil(OWNERS);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..OWNERS {
        let (owner, url) = (
            Frozen::start(&server, number, mode),
            server.url().to_owned(),
        );
        tasks.spawn(async move {
            for round in 0..rounds {
                owner.round(&url, round).await;
            }
        });
    }
    tasks.join_all().await;
    // A later owner's fencing token is higher.
    let commit = |row: &str| format!("pg_xact_commit_timestamp({row}.xmin)");
    let late = format!(
        "SELECT count(*) FROM written a WHERE EXISTS (SELECT FROM written b \
         WHERE b.account = a.account AND b.fence > a.fence AND {} < {})",
        commit("b"),
        commit("a")
    );
    server.value(&late).parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_frozen_owner_that_checks_its_lock_writes_behind_the_next_one() {
    needs!(postgres);
    let freezes = setting("LOCK_TESTS_FREEZES", 24);
    let late = late_writes(freezes, "checked").await;
    println!("{late} late writes in {freezes} freezes, with the check");
    assert_eq!(late, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_owners_that_do_not_check_their_lock_write_behind_the_next_one() {
    needs!(postgres);
    let freezes = setting("LOCK_TESTS_FREEZES", 24);
    let late = late_writes(freezes, "unchecked").await;
    println!("{late} late writes in {freezes} freezes, without the check");
    assert!(late > 0, "the harness makes late writes");
}
