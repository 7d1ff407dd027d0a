//! Tests that the audit finds the settings of a server that endanger locks.

use lock_core::FindingKind::{
    AsynchronousStandby, EndlessTransactions, LogsKeys, MayNotSubscribe, NoVacuum, OldTransaction,
    UnsyncedLog,
};
use lock_core::{FindingKind, LockManager};
use lock_tests::{SqlServer, needs};

use super::manager;

/// The settings of a server about which there is nothing to say.
const GOOD: [&str; 1] = ["idle_in_transaction_session_timeout=60s"];

async fn found(locks: &LockManager) -> Vec<FindingKind> {
    let findings = locks.audit().await.expect("an answer");
    findings.iter().map(lock_core::Finding::kind).collect()
}

#[tokio::test]
async fn a_server_with_good_settings_has_no_finding() {
    needs!(postgres);
    let server = SqlServer::postgres_with(&GOOD);
    assert_eq!(found(&manager(server.url()).await).await, []);
}

#[tokio::test]
async fn each_setting_that_endangers_locks_is_one_finding() {
    needs!(postgres);
    let server = SqlServer::postgres_with(&["fsync=off", "autovacuum=off", "log_statement=all"]);
    // A view in place of the server's own shows a transaction that is two minutes old.
    server.sql(
        "CREATE VIEW pg_stat_activity AS SELECT current_database() AS datname, \
         clock_timestamp() - interval '2 minutes' AS xact_start; \
         ALTER ROLE locks SET search_path = public, pg_catalog",
    );
    let unheard = format!("{}?prepare=off", server.url());
    let mut kinds = vec![
        UnsyncedLog,
        NoVacuum,
        LogsKeys,
        EndlessTransactions,
        OldTransaction,
    ];
    assert_eq!(found(&manager(server.url()).await).await, kinds);
    kinds.push(MayNotSubscribe);
    assert_eq!(found(&manager(&unheard).await).await, kinds);
}

#[tokio::test]
async fn a_log_of_slow_statements_without_their_parameters_shows_no_key() {
    needs!(postgres);
    let server = SqlServer::postgres_with(&[GOOD[0], "log_min_duration_statement=0"]);
    let locks = manager(server.url()).await;
    assert_eq!(found(&locks).await, [LogsKeys]);
    drop(locks);
    server.sql("ALTER ROLE locks SET log_parameter_max_length = 0");
    assert_eq!(found(&manager(server.url()).await).await, []);
}

#[tokio::test]
async fn a_standby_is_a_finding_until_commits_wait_for_it() {
    needs!(postgres);
    let server = SqlServer::postgres_with(&GOOD);
    let _standby = server.standby(server.address(), &["fsync=off"]);
    let locks = manager(server.url()).await;
    assert_eq!(found(&locks).await, [AsynchronousStandby]);
    server.waits_for_a_standby();
    assert_eq!(found(&locks).await, []);
}

#[tokio::test]
async fn commits_that_do_not_wait_for_the_standby_that_is_named_are_a_finding() {
    needs!(postgres);
    let settings = ["synchronous_standby_names=a", "synchronous_commit=local"];
    let server = SqlServer::postgres_with(&[GOOD[0], settings[0], settings[1]]);
    assert_eq!(found(&manager(server.url()).await).await, [UnsyncedLog]);
}
