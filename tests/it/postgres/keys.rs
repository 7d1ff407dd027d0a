//! Tests keys that a text of SQL cannot have, and the places where no key may appear.

use lock_core::{LockKey, LockManager, Wait};
use lock_tests::{ChildProcess, SqlServer, needs};
use tokio_postgres::NoTls;

use super::table::row;
use super::{its_turn, long, manager, table};

#[tokio::test]
async fn keys_with_nul_and_of_the_longest_length_are_handed_over_and_listed() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let keys = ["a\0b\n'; DROP", "%_\\", &"ü".repeat(512), &"k".repeat(1024)];
    for key in keys {
        let request = |locks: &LockManager| locks.lock(LockKey::exact(key)).ttl(long());
        let guard = request(&locks).acquire().await.expect("free");
        let waiter = tokio::spawn(request(&other).wait(Wait::Forever).acquire());
        table(&server).queued(1).await;
        let page = locks.operator("ops").list("*").next_page().await;
        let page = page.expect("an answer").expect("a page");
        assert_eq!(page[0].key(), key);
        guard.release().await.expect("held");
        its_turn(waiter).await.release().await.expect("held");
    }
    table(&server).is_clean().await;
}

const SECRET: &str = "sesame-secret";
const URL: &str = "LOCK_TESTS_POSTGRES_OF_SECRETS";

/// Takes locks, and is refused in each way in which a server names a row. Prints its log and all errors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that another test starts"]
async fn says_all_that_it_has_to_say() {
    let Ok(url) = std::env::var(URL) else { return };
    let all = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    all.with_writer(std::io::stdout).init();
    let (client, connection) = tokio_postgres::connect(&url, NoTls)
        .await
        .expect("a server");
    tokio::spawn(connection);
    let sql = async |text: &str| client.batch_execute(text).await.expect("an answer");
    let hears = |error: lock_core::Error| println!("\nsaid {error} {error:?}");

    let locks = manager(&url).await;
    let request = |times: usize| locks.lock(SECRET.repeat(times)).ttl(long());
    let held = request(1).acquire().await.expect("free");
    let row = row(super::DEFAULT, SECRET);
    let doc = format!("SELECT encode(doc, 'hex') FROM lockkit.cell WHERE key = {row}");
    let doc: String = client.query_one(&doc, &[]).await.expect("a row").get(0);
    println!("\ndocument {doc}");
    hears(request(1).acquire().await.expect_err("held"));
    sql("ALTER TABLE lockkit.cell ADD CONSTRAINT none CHECK (false) NOT VALID").await;
    hears(request(2).acquire().await.expect_err("refused"));
    sql("ALTER TABLE lockkit.cell DROP CONSTRAINT none").await;
    sql("ALTER TABLE lockkit.cell RENAME TO away").await;
    hears(request(3).acquire().await.expect_err("no table"));
    sql("ALTER TABLE lockkit.away RENAME TO cell").await;
    sql(&format!("DELETE FROM lockkit.cell WHERE key = {row}")).await;
    hears(held.release().await.expect_err("deleted"));
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'").await;
    request(4).acquire().await.map_or_else(hears, drop);
    println!("\n{locks:?}\nall is said");
}

/// The server puts the key of a row into the details of its errors.
#[test]
fn no_key_and_no_token_is_in_a_log_line_or_an_error() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let test = "postgres::keys::says_all_that_it_has_to_say";
    let process = ChildProcess::of_test(test, &[(URL, server.url())]);
    process.says("all is said");
    let text = process.output();
    let document = text.lines().find_map(|line| line.strip_prefix("document "));
    let document = document.expect("a document").to_owned();
    let others: Vec<_> = text
        .lines()
        .filter(|line| !line.contains(&document))
        .collect();
    let others = others.join("\n");
    assert!(others.matches("said ").count() >= 4, "{others}");
    assert!(!others.contains(SECRET), "{others}");
    let parts = document.as_bytes().windows(2 * PART).step_by(2);
    for part in parts.map(String::from_utf8_lossy) {
        assert!(
            !others.contains(&*part),
            "{part} is a part of a token: {others}"
        );
    }
}

/// The address of a process has eight bytes, and a part of a token that is longer has bytes of its secret too.
const PART: usize = 12;
