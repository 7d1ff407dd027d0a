//! What only PostgreSQL does: failed transactions, isolation levels, advisory locks, and transactions without a client.

use lock_core::Error;
use lock_core::once::{Claimed, Settled, Tx};
use lock_tests::needs;

use super::altered::{Hooked, replaced};
use super::postgres::Fresh;
use super::suite::{Fixture, claim, done, effect};

#[tokio::test]
async fn a_failed_transaction_cannot_complete() {
    needs!(postgres);
    let fixture = Fresh::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    let own = claim("k");
    tx.claim(&own).await.expect("an answer");
    effect::<Fresh>(&mut tx).await;
    Fresh::execute(&mut tx, "SELECT 1 / 0")
        .await
        .expect_err("a division by zero");
    let failed = tx
        .complete(&own, None)
        .await
        .expect_err("the transaction has failed");
    assert!(
        failed.is_unavailable() && !failed.is_outcome_unknown(),
        "{failed}"
    );
    assert!(tx.commit().await.expect_err("an open claim").is_invalid());
    assert_eq!(fixture.effects().await, 0);
}

#[tokio::test]
async fn an_older_snapshot_is_a_serialization_failure() {
    needs!(postgres);
    let fixture = Fresh::start().await;
    for level in ["repeatable read", "serializable"] {
        let sql = format!("ALTER ROLE locks SET default_transaction_isolation = '{level}'");
        fixture.sql(sql.leak()).await;
        let db = fixture.other();
        let mut tx = Tx::begin(&db).await.expect("a transaction");
        Fresh::execute(&mut tx, "SELECT 1")
            .await
            .expect("a snapshot");
        done::<Fresh>(&fixture.db(), &claim(level), None)
            .await
            .expect("granted");
        let refused = tx
            .claim(&claim(level))
            .await
            .expect_err("an older snapshot");
        assert!(refused.is_unavailable(), "{refused}");
    }
}

#[tokio::test]
async fn a_foreign_advisory_lock_refuses_a_claim() {
    needs!(postgres);
    let fixture = Fresh::start().await;
    let bytes = claim("k").operation().to_bytes();
    let number =
        i64::from_be_bytes(std::array::from_fn(|index| bytes[index])) ^ 0x6c6f_636b_6b69_7401;
    let mut foreign = Tx::begin(&fixture.other()).await.expect("a transaction");
    let sql = format!("SELECT pg_advisory_xact_lock({number})");
    Fresh::execute(&mut foreign, sql.leak())
        .await
        .expect("a free lock");
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    assert_eq!(
        tx.claim(&claim("k")).await.expect("an answer"),
        Claimed::Busy
    );
    assert_eq!(
        claim("k").settle(&fixture.db()).await.expect("an answer"),
        Settled::Open
    );
}

#[tokio::test]
async fn a_unique_index_is_the_arbiter_where_advisory_locks_do_nothing() {
    needs!(postgres);
    let fixture = Fresh::start().await;
    for (key, commits) in [("k", true), ("l", false)] {
        let unlocked = replaced(
            "pg_try_advisory_xact_lock($4::bigint)",
            "$4::bigint IS NOT NULL",
        );
        let db = Hooked::new(fixture.db(), unlocked);
        let own = claim(key);
        let mut first = Tx::begin(&db).await.expect("a transaction");
        assert_eq!(
            first.claim(&own).await.expect("an answer"),
            Claimed::Granted
        );
        let waiting = tokio::spawn(async move {
            let mut second = Tx::begin(&db).await?;
            let claimed = second.claim(&claim(key)).await?;
            Ok::<_, Error>(claimed)
        });
        if commits {
            first.complete(&own, Some(b"1")).await.expect("its own");
            first.commit().await.expect("an answer");
        } else {
            first.rollback().await.expect("an answer");
        }
        match waiting.await.expect("no panic").expect("an answer") {
            Claimed::Recorded(found) => assert!(commits && found.is_of(&own)),
            claimed => assert!(!commits && claimed == Claimed::Granted, "{claimed:?}"),
        }
    }
}

#[tokio::test]
async fn a_transaction_whose_client_is_gone_is_open_until_the_server_ends_it() {
    needs!(postgres);
    let fixture = Fresh::start().await;
    let own = claim("k");
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    tx.claim(&own).await.expect("an answer");
    assert_eq!(
        own.settle(&fixture.other()).await.expect("an answer"),
        Settled::Open
    );
    fixture
        .sql(
            "SELECT ''::bytea, NULL::bytea FROM pg_stat_activity \
              WHERE CASE WHEN state = 'idle in transaction' THEN pg_terminate_backend(pid) ELSE false END",
        )
        .await;
    let failed = tx
        .complete(&own, None)
        .await
        .expect_err("the connection has ended");
    assert!(failed.is_unavailable(), "{failed}");
    // The server ends its process, and then its locks.
    loop {
        match own.settle(&fixture.other()).await.expect("an answer") {
            Settled::Open => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            settled => break assert_eq!(settled, Settled::RolledBack),
        }
    }
}
