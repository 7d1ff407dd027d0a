//! Kills processes while clients repeat their requests until they are answered.
//!
//! `LOCK_TESTS_ONCE` sets the number of kills over all tests of this file. Processes and times follow from a seed. Each
//! test prints a line of a table, of which `/once/payments` must have four zeros.

mod clients;
mod run;
mod steps;
mod tally;

use lock_tests::needs;

use self::run::{Kills, Variant};
use crate::payments::books::Books;

/// The tests that share the kills.
const TESTS: u64 = 6;

/// Returns the number of kills of each test.
fn kills() -> u64 {
    let all = std::env::var("LOCK_TESTS_ONCE").map_or(60, |all| all.parse().expect("a number"));
    u64::max(all / TESTS, 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payments_on_postgres_and_redis_are_taken_once_without_a_unique_column() {
    needs!(redis);
    needs!(postgres);
    let variant = Variant {
        name: "once, PostgreSQL + Redis",
        path: "/once/payments",
        redis: true,
        kills: Kills::AtAnyTime,
    };
    variant.run(Books::postgres(), kills()).await.assert_once();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payments_on_postgres_alone_are_taken_once_without_a_unique_column() {
    needs!(postgres);
    let variant = Variant {
        name: "once, PostgreSQL alone",
        path: "/once/payments",
        redis: false,
        kills: Kills::AtAnyTime,
    };
    variant.run(Books::postgres(), kills()).await.assert_once();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payments_on_sqlite_alone_are_taken_once_without_a_unique_column() {
    let variant = Variant {
        name: "once, SQLite alone",
        path: "/once/payments",
        redis: false,
        kills: Kills::AtAnyTime,
    };
    variant.run(Books::sqlite(), kills()).await.assert_once();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payments_on_sqlite_and_redis_are_taken_once_without_a_unique_column() {
    needs!(redis);
    let variant = Variant {
        name: "once, SQLite + Redis",
        path: "/once/payments",
        redis: true,
        kills: Kills::AtAnyTime,
    };
    variant.run(Books::sqlite(), kills()).await.assert_once();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushall_and_terminate_while_clients_repeat() {
    needs!(redis);
    needs!(postgres);
    let variant = Variant {
        name: "once, PostgreSQL + Redis, each kill with FLUSHALL and pg_terminate_backend of 30 %",
        path: "/once/payments",
        redis: true,
        kills: Kills::WithLossesOfTheServers,
    };
    variant.run(Books::postgres(), kills()).await.assert_once();
}

/// The same clients and kills find double payments where payment and record are two steps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_whose_record_is_a_second_step_is_taken_twice() {
    needs!(redis);
    needs!(postgres);
    let variant = Variant {
        name: "record by the release, PostgreSQL + Redis",
        path: "/unguarded/payments",
        redis: true,
        kills: Kills::BeforeARecord,
    };
    let tally = variant.run(Books::postgres(), kills()).await;
    assert!(tally.unrecorded >= tally.kills, "{tally:?}");
    assert!(tally.doubles >= tally.unrecorded, "{tally:?}");
}
