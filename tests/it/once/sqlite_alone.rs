//! What only SQLite does: it can roll a transaction back without being asked.

use lock_core::once::{Claimed, Tx};

use super::sqlite::Fresh;
use super::suite::{Fixture, claim, effect};

/// Fails a statement in such a way that SQLite rolls the whole transaction back.
async fn fail(tx: &mut Tx<super::sqlite::Sqlite>) {
    let sql =
        "INSERT INTO effects VALUES ('twice'); INSERT OR ROLLBACK INTO effects VALUES ('twice')";
    Fresh::execute(tx, sql).await.expect_err("a unique column");
}

#[tokio::test]
async fn sqlite_rolls_back_unseen_and_complete_notices() {
    let fixture = Fresh::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    let own = claim("k");
    tx.claim(&own).await.expect("an answer");
    fail(&mut tx).await;
    // These are not in a transaction any more.
    let gone = tx.complete(&own, Some(b"answer")).await;
    assert!(gone.expect_err("the claim is gone").is_invalid());
    drop(tx);
    assert_eq!(fixture.records().await, 0);
}

#[tokio::test]
async fn the_connection_is_usable_after_sqlite_has_rolled_back_unseen() {
    let fixture = Fresh::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    tx.claim(&claim("k")).await.expect("an answer");
    fail(&mut tx).await;
    tx.rollback().await.expect("an answer");
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    let own = claim("k");
    assert_eq!(tx.claim(&own).await.expect("an answer"), Claimed::Granted);
    effect::<Fresh>(&mut tx).await;
    tx.complete(&own, None).await.expect("its own");
    tx.commit().await.expect("an answer");
    assert_eq!(fixture.effects().await, 1);
}
