//! Tests the check of a lock inside a user's own transaction.

use std::task::{Context, Waker};
use std::time::Duration;

use lock_core::operator::Forced;
use lock_core::{LockGuard, LockManager, ReleaseMode, Renew, Wait};
use lock_tests::{SqlServer, needs, wait};
use tokio_postgres::Client;

use super::{client, is_refused, its_turn, long, manager, once, table, taken};

/// Begins a transaction and checks the lock in it. Returns whether the lock has its row.
async fn checks(client: &Client, guard: &LockGuard) -> bool {
    client.batch_execute("BEGIN").await.expect("a transaction");
    let fence: i64 = guard.fencing_token().into();
    let sql = guard.check_sql().expect("on PostgreSQL");
    let found = client.query_opt(sql, &[&guard.key(), &fence]).await;
    found.expect("an answer").is_some()
}

/// Takes a lock that is not renewed, and waits until it has run out.
async fn run_out(locks: &LockManager) -> LockGuard {
    let request = locks.lock("k").ttl(Duration::from_millis(300));
    let guard = request.renew(Renew::Off).acquire().await.expect("free");
    guard.lost().await;
    guard
}

/// The time for which a test watches that something does not happen.
const WATCHED: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_passes_a_transaction_that_has_checked_the_lock() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let locks = manager(server.url()).await;
    let guard = taken(&locks, "k", Duration::from_secs(3)).await;
    let client = client(&server).await;
    assert!(checks(&client, &guard).await);
    let table = table(&server);
    for _ in 0..2 {
        let ends = table.ends("k").expect("held");
        wait::eventually("the lock is renewed", async || {
            table.ends("k").expect("held") > ends
        })
        .await;
    }
    assert!(guard.is_valid());
    client.batch_execute("COMMIT").await.expect("a commit");
    guard.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_take_over_waits_for_the_commit_and_the_first_owner_finds_no_row() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let client = client(&server).await;
    let request = locks.lock("k").ttl(Duration::from_secs(1));
    let guard = request.renew(Renew::Off).acquire().await.expect("free");
    assert!(checks(&client, &guard).await);
    guard.lost().await;
    let next = tokio::spawn(other.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    tokio::time::sleep(WATCHED).await;
    assert!(!next.is_finished());
    client.batch_execute("COMMIT").await.expect("a commit");
    let next = its_turn(next).await;
    assert!(!checks(&client, &guard).await, "it was replaced");
    client.batch_execute("ROLLBACK").await.expect("an answer");
    assert!(checks(&client, &next).await);
    client.batch_execute("COMMIT").await.expect("a commit");
    next.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_of_an_operator_waits_for_the_commit() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let locks = manager(server.url()).await;
    let operator = manager(server.url()).await.operator("ops");
    let client = client(&server).await;
    let guard = taken(&locks, "k", long()).await;
    assert!(checks(&client, &guard).await);
    let seen = operator.inspect("k").await.expect("an inspection");
    let holder = seen.holders()[0].clone();
    let order = tokio::spawn(async move { operator.force(&holder).because("a test").await });
    tokio::time::sleep(WATCHED).await;
    assert!(!order.is_finished());
    client.batch_execute("COMMIT").await.expect("a commit");
    let forced = order.await.expect("no panic").expect("an answer");
    assert_ne!(forced, Forced::Changed);
    wait::eventually("the row is not the owner's any more", async || {
        let found = checks(&client, &guard).await;
        client.batch_execute("ROLLBACK").await.expect("an answer");
        !found
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_before_the_commit_takes_effect_behind_it() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let client = client(&server).await;
    let request = locks.lock("k").ttl(long()).release(ReleaseMode::Background);
    let guard = request.acquire().await.expect("free");
    assert!(checks(&client, &guard).await);
    drop(guard);
    tokio::time::sleep(WATCHED).await;
    is_refused(&other, "k").await;
    client.batch_execute("COMMIT").await.expect("a commit");
    table(&server).is_clean().await;
}

/// The next owner is a task of the same process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_task_of_the_process_waits_for_the_commit_too() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let locks = manager(server.url()).await;
    let client = client(&server).await;
    let request = locks.lock("k").ttl(long()).release(ReleaseMode::Background);
    let guard = request.acquire().await.expect("free");
    // It stands in the queue of the process from its first poll on.
    let mut next = Box::pin(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    let mut unpolled = Context::from_waker(Waker::noop());
    assert!(next.as_mut().poll(&mut unpolled).is_pending());
    let next = tokio::spawn(next);
    // A lock passes on in the process within 10 ms.
    assert!(checks(&client, &guard).await);
    let (key, fence): (_, i64) = (guard.key().to_owned(), guard.fencing_token().into());
    let sql = guard.check_sql().expect("on PostgreSQL");
    drop(guard);
    tokio::time::sleep(WATCHED).await;
    assert!(!next.is_finished());
    client.batch_execute("COMMIT").await.expect("a commit");
    let next = its_turn(next).await;
    let found = client.query_opt(sql, &[&key, &fence]).await;
    assert!(found.expect("an answer").is_none(), "it was replaced");
    assert!(checks(&client, &next).await);
    client.batch_execute("COMMIT").await.expect("a commit");
    next.release().await.expect("held");
}

#[tokio::test]
async fn a_lock_of_several_keys_is_checked_key_by_key_also_if_it_had_to_wait() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let client = client(&server).await;
    let checks_all = async |guard: &LockGuard| {
        client.batch_execute("BEGIN").await.expect("a transaction");
        let sql = guard.check_sql().expect("on PostgreSQL");
        let fence = i64::from(guard.fencing_token());
        for key in guard.keys() {
            let found = client.query_opt(sql, &[&key, &fence]).await;
            assert!(found.expect("an answer").is_some(), "{key}");
        }
        client.batch_execute("COMMIT").await.expect("a commit");
    };
    let at_once = locks.lock_all(["a", "b"]).ttl(long()).acquire().await;
    let at_once = at_once.expect("free");
    checks_all(&at_once).await;
    at_once.release().await.expect("held");
    for (held, free) in [("a", "b"), ("b", "a")] {
        let held = taken(&other, held, long()).await;
        let waiting = locks.lock_all(["a", "b"]).ttl(long()).wait(Wait::Forever);
        let waiting = tokio::spawn(waiting.acquire());
        table(&server).queued(1).await;
        // The key that is free gets a later token.
        once(&other, free).await;
        held.release().await.expect("held");
        let both = its_turn(waiting).await;
        checks_all(&both).await;
        both.release().await.expect("held");
    }
    table(&server).is_clean().await;
}

#[tokio::test]
async fn an_owner_that_was_replaced_finds_no_row() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let client = client(&server).await;
    let first = run_out(&locks).await;
    let next = other.lock("k").ttl(long()).wait(long()).acquire().await;
    let next = next.expect("free");
    assert!(!checks(&client, &first).await);
    client.batch_execute("ROLLBACK").await.expect("an answer");
    next.release().await.expect("held");
    assert!(!checks(&client, &first).await);
    client.batch_execute("ROLLBACK").await.expect("an answer");
}

#[tokio::test]
async fn the_check_of_a_released_lock_finds_no_row() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let locks = manager(server.url()).await;
    let client = client(&server).await;
    let guard = taken(&locks, "k", long()).await;
    let (key, fence): (_, i64) = (guard.key().to_owned(), guard.fencing_token().into());
    let sql = guard.check_sql().expect("on PostgreSQL");
    guard.release().await.expect("held");
    let found = client.query_opt(sql, &[&key, &fence]).await;
    assert!(found.expect("an answer").is_none());
}

#[tokio::test]
async fn several_keys_of_which_a_transaction_checks_one_are_busy() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let client = client(&server).await;
    let first = run_out(&locks).await;
    assert!(checks(&client, &first).await);
    for keys in [["k", "l"], ["j", "k"]] {
        let both = other.lock_all(keys).ttl(long()).try_acquire().await;
        assert!(both.expect("an answer").is_none(), "the key is checked");
    }
    client.batch_execute("COMMIT").await.expect("a commit");
    let both = other.lock_all(["k", "l"]).ttl(long()).acquire().await;
    both.expect("free").release().await.expect("held");
}
