//! Two statements in one trip to PostgreSQL: the second one is on its way before the first one is answered.

use lock_core::OperationId;
use lock_core::once::{Claimed, Tx, peek};
use lock_tests::{Direction, Flow, Proxy, needs, wait};

use super::altered::{Hooked, replaced};
use super::postgres::Fresh;
use super::suite::{Fixture, claim, done, effect};

/// Waits until the server has committed the record.
async fn is_committed(fixture: &Fresh, operation: OperationId) {
    wait::eventually("the server commits", async || {
        let found = peek(&fixture.db(), operation).await;
        found.expect("an answer").is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn begin_and_claim_are_one_trip_and_completion_and_commit_another() {
    needs!(postgres);
    let fixture = Fresh::start().await;
    let proxy = Proxy::to(fixture.address());
    let db = fixture.through(&proxy);
    // It makes the connection and prepares the statements.
    let first = done::<Fresh>(&db, &claim("first"), Some(b"1")).await;
    first.expect("an answer");

    let own = claim("k");
    proxy.set(Direction::Replies, Flow::Hold);
    let beginning = {
        let db = db.clone();
        tokio::spawn(async move { Tx::begin_and_claim(&db, &own).await })
    };
    wait::eventually("the server grants the claim", async || {
        let locks = "SELECT convert_to(count(*)::text, 'UTF8'), NULL::bytea FROM pg_locks \
                     WHERE locktype = 'advisory'";
        fixture.count(locks, "").await == 1
    })
    .await;
    assert!(!beginning.is_finished(), "no answer has come");
    proxy.pass();
    let begun = beginning.await.expect("no panic").expect("an answer");
    let (mut tx, claimed) = begun;
    assert_eq!(claimed, Claimed::Granted);
    effect::<Fresh>(&mut tx).await;

    proxy.set(Direction::Replies, Flow::Hold);
    let operation = own.operation();
    let ending = tokio::spawn(async move { tx.complete_and_commit(&own, Some(b"2")).await });
    is_committed(&fixture, operation).await;
    assert!(!ending.is_finished(), "no answer has come");
    proxy.pass();
    ending.await.expect("no panic").expect("a commit");
    assert_eq!(fixture.effects().await, 2);
}

/// A pooler answers so when its connection to the server breaks, though the server has done both statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_statement_is_answered_by_a_pooler_that_lost_its_server_is_unknown() {
    needs!(postgres);
    let fixture = Fresh::start().await;
    let proxy = Proxy::to(fixture.address());
    let db = fixture.through(&proxy);
    // It makes the connection and prepares the statements.
    let first = done::<Fresh>(&db, &claim("first"), Some(b"1")).await;
    first.expect("an answer");
    let own = claim("k");
    let (mut tx, _) = Tx::begin_and_claim(&db, &own).await.expect("an answer");
    effect::<Fresh>(&mut tx).await;
    proxy.set(Direction::Replies, Flow::Hold);
    let operation = own.operation();
    let ending = tokio::spawn(async move { tx.complete_and_commit(&own, Some(b"1")).await });
    is_committed(&fixture, operation).await;
    let fields = b"SFATAL\0C08P01\0Mserver conn crashed?\0\0";
    let length = u32::try_from(4 + fields.len()).expect("a short message");
    let fatal = [&b"E"[..], &length.to_be_bytes(), fields].concat();
    proxy.set(Direction::Replies, Flow::Replace(fatal));
    wait::until("the message has passed", || {
        proxy.held(Direction::Replies) == 0
    });
    proxy.outlive_clients();
    let unknown = ending.await.expect("no panic").expect_err("no answer");
    assert!(unknown.is_outcome_unknown(), "{unknown}");
}

/// The claim is on its way when BEGIN fails, and is then a transaction of its own.
#[tokio::test]
async fn a_begin_that_fails_claims_nothing() {
    needs!(postgres);
    let fixture = Fresh::start().await;
    let db = Hooked::new(fixture.db(), replaced("BEGIN", "BEGIN WITHOUT LUCK"));
    let begun = Tx::begin_and_claim(&db, &claim("k")).await;
    let refused = begun.expect_err("the server does not know the word");
    assert!(
        refused.is_unavailable() && !refused.is_outcome_unknown(),
        "{refused}"
    );
    assert_eq!(fixture.records().await, 0);
    let free = Tx::begin_and_claim(&fixture.db(), &claim("k")).await;
    assert_eq!(free.expect("an answer").1, Claimed::Granted);
}

#[tokio::test]
async fn a_statement_that_fails_beside_its_commit_is_no_unknown_outcome() {
    needs!(postgres);
    let fixture = Fresh::start().await;
    let db = fixture.db();
    let own = claim("k");
    let (mut tx, _) = Tx::begin_and_claim(&db, &own).await.expect("an answer");
    effect::<Fresh>(&mut tx).await;
    Fresh::execute(&mut tx, "SELECT 1 / 0")
        .await
        .expect_err("a division by zero");
    let failed = tx.complete_and_commit(&own, Some(b"answer")).await;
    let failed = failed.expect_err("the transaction has failed");
    assert!(
        failed.is_unavailable() && !failed.is_outcome_unknown(),
        "{failed}"
    );
    assert!(
        failed.to_string().contains("do not ignore the error"),
        "{failed}"
    );
    assert_eq!((fixture.effects().await, fixture.records().await), (0, 0));
    // The connection is in the pool again, with no transaction.
    done::<Fresh>(&db, &own, None).await.expect("a free key");
}

/// PostgreSQL answers such a COMMIT without an error.
#[tokio::test]
async fn the_commit_of_a_failed_transaction_is_an_error() {
    needs!(postgres);
    let fixture = Fresh::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    effect::<Fresh>(&mut tx).await;
    Fresh::execute(&mut tx, "SELECT 1 / 0")
        .await
        .expect_err("a division by zero");
    let failed = tx.commit().await.expect_err("nothing was committed");
    assert!(
        failed.is_unavailable() && !failed.is_outcome_unknown(),
        "{failed}"
    );
    assert_eq!(fixture.effects().await, 0);
}
