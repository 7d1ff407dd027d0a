//! Tests a pooler that gives each transaction another connection.

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{Pooler, SqlServer, needs};

use super::{is_refused, its_turn, long, manager, table, taken};

/// Takes a lock, hands it to a waiter, and renews neither. Returns nothing, and leaves nothing.
async fn hands_over(server: &SqlServer, locks: &LockManager, other: &LockManager) {
    for key in ["k", "l"] {
        let guard = taken(locks, key, long()).await;
        is_refused(other, key).await;
        let waiter = tokio::spawn(other.lock(key).ttl(long()).wait(Wait::Forever).acquire());
        tokio::task::yield_now().await;
        guard.release().await.expect("held");
        its_turn(waiter).await.release().await.expect("held");
    }
    table(server).is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_waiters_are_told_by_a_way_of_their_own() {
    needs!(postgres);
    needs!(pgbouncer);
    let server = SqlServer::postgres();
    let pooler = Pooler::start(&server, 3);
    let url = format!("{}?prepare=off&listen={}", pooler.url(), server.url());
    let (locks, other) = (manager(&url).await, manager(&url).await);
    let guard = taken(&locks, "w", long()).await;
    let waiter = tokio::spawn(other.lock("w").ttl(long()).wait(Wait::Forever).acquire());
    table(&server).queued(1).await;
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
    hands_over(&server, &locks, &other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_alone_waiters_ask_again_and_the_audit_says_so() {
    needs!(postgres);
    needs!(pgbouncer);
    let server = SqlServer::postgres();
    let pooler = Pooler::start(&server, 3);
    let url = format!("{}?prepare=off", pooler.url());
    let (locks, other) = (manager(&url).await, manager(&url).await);
    hands_over(&server, &locks, &other).await;
    let findings = locks.audit().await.expect("an audit");
    let said: Vec<_> = findings.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|line| line.contains("pooler")), "{said:#?}");
}

/// Otherwise its settings would stay with connections of other clients, and its waiters would count on messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_of_which_the_url_says_nothing_is_misconfigured() {
    needs!(postgres);
    needs!(pgbouncer);
    let server = SqlServer::postgres();
    for settings in ["", "ignore_startup_parameters = options\n"] {
        let pooler = Pooler::start_with(&server, 3, settings);
        let error = LockManager::connect(&pooler.url())
            .await
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
        assert!(error.to_string().contains("`?listen="), "{error}");
    }
}
