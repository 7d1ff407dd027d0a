//! Tests users that may not do all, and a table that is not there.

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{SqlServer, needs};

use super::{its_turn, kind, long, manager, once, table, taken};

const FOUR_RIGHTS: &str = "GRANT USAGE ON SCHEMA lockkit TO app; \
     GRANT SELECT, INSERT, UPDATE, DELETE ON lockkit.cell TO app; \
     GRANT USAGE, UPDATE ON SEQUENCE lockkit.revision TO app";

/// Returns a server with a user who owns nothing.
fn with_a_user() -> SqlServer {
    let server = SqlServer::postgres();
    server.sql("CREATE ROLE app LOGIN");
    server
}

/// Returns the error of the first call that says what is wrong: connecting, or taking a lock.
async fn refused(url: &str) -> lock_core::Error {
    match LockManager::connect(url).await {
        Ok(locks) => locks.lock("k").acquire().await.expect_err("refused"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_user_who_may_not_create_the_table_is_misconfigured_and_the_error_has_the_sql() {
    needs!(postgres);
    let server = with_a_user();
    let error = refused(&server.url_of("app")).await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    let said = error.to_string();
    assert!(
        said.contains("CREATE TABLE IF NOT EXISTS lockkit.cell"),
        "{said}"
    );
    server.sql(&said[said.find("CREATE SCHEMA").expect("the whole SQL")..]);
    manager(server.url()).await;
}

#[tokio::test]
async fn a_user_with_the_rights_of_the_guide_takes_waits_for_and_lists_locks() {
    needs!(postgres);
    let server = with_a_user();
    manager(server.url()).await;
    server.sql(FOUR_RIGHTS);
    let url = server.url_of("app");
    let (locks, other) = (manager(&url).await, manager(&url).await);
    let guard = taken(&locks, "k", long()).await;
    let waiter = tokio::spawn(other.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    table(&server).queued(1).await;
    guard.release().await.expect("held");
    let guard = its_turn(waiter).await;
    let page = locks.operator("ops").list("*").next_page().await;
    assert_eq!(page.expect("a list").map(|locks| locks.len()), Some(1));
    locks.ping().await.expect("a store that answers");
    guard.release().await.expect("held");
    table(&server).is_clean().await;
}

#[tokio::test]
async fn a_user_who_may_only_read_is_misconfigured_also_by_a_ping() {
    needs!(postgres);
    let server = with_a_user();
    manager(server.url()).await;
    server.sql("GRANT USAGE ON SCHEMA lockkit TO app; GRANT SELECT ON lockkit.cell TO app");
    let url = server.url_of("app");
    assert_eq!(refused(&url).await.kind(), ErrorKind::Misconfigured);
    if let Ok(locks) = LockManager::connect_lazy(&url) {
        assert_eq!(kind(locks.ping().await), ErrorKind::Misconfigured);
    }
}

/// Such a user looks like a standby, so the manager looks for the primary.
#[tokio::test]
async fn a_user_whose_transactions_only_read_gets_no_lock_and_is_never_busy() {
    needs!(postgres);
    let server = with_a_user();
    manager(server.url()).await;
    server.sql(FOUR_RIGHTS);
    server.sql("ALTER ROLE app SET default_transaction_read_only = on");
    let kind = refused(&server.url_of("app")).await.kind();
    assert!(
        matches!(kind, ErrorKind::Unavailable | ErrorKind::Misconfigured),
        "{kind:?}"
    );
}

#[tokio::test]
async fn a_table_that_is_dropped_is_misconfigured_until_it_is_back() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let locks = manager(server.url()).await;
    let guard = taken(&locks, "k", long()).await;
    server.sql("ALTER TABLE lockkit.cell RENAME TO away");
    let error = locks.lock("l").acquire().await.expect_err("no table");
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(guard.is_valid());
    server.sql("ALTER TABLE lockkit.away RENAME TO cell");
    once(&locks, "l").await;
    guard.release().await.expect("held");
}

#[tokio::test]
async fn an_unlogged_table_is_refused() {
    needs!(postgres);
    let server = SqlServer::postgres();
    manager(server.url()).await;
    server.sql("ALTER TABLE lockkit.cell SET UNLOGGED");
    let error = refused(server.url()).await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("UNLOGGED"), "{error}");
}
