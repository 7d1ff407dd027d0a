//! A table, a right or a server that is not as it must be.

use lock_core::Error;
use lock_core::once::{self, Database};
use lock_tests::needs;

use super::suite::{Fixture, claim};
use super::{postgres, sqlite};

/// Asserts that a database is reported, at startup and by a request, with this advice.
async fn reported<D: Database>(db: &D, advice: &str) {
    let claimed = async {
        let mut tx = once::Tx::begin(db).await?;
        let own = claim("k");
        tx.claim(&own).await?;
        tx.complete(&own, Some(&[])).await
    };
    for error in [once::check(db).await, claimed.await] {
        let error: Error = error.expect_err(advice);
        assert!(error.is_misconfigured(), "{error} {:?}", error.kind());
        assert!(error.to_string().contains(advice), "{error}");
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[tokio::test]
async fn a_database_without_the_table_is_reported() {
    let fixture = sqlite::Fresh::start().await;
    fixture.sql("DROP TABLE lockkit_once").await;
    reported(&fixture.db(), "create_table").await;
    needs!(postgres);
    let fixture = postgres::Fresh::start().await;
    fixture.sql("DROP TABLE lockkit_once").await;
    reported(&fixture.db(), "create_table").await;
}

#[tokio::test]
async fn another_table_of_that_name_is_reported() {
    let fixture = sqlite::Fresh::start().await;
    fixture
        .sql("ALTER TABLE lockkit_once DROP COLUMN record")
        .await;
    reported(&fixture.db(), "SCHEMA_SQLITE").await;
    needs!(postgres);
    for change in [
        "ALTER TABLE lockkit_once DROP COLUMN record",
        "ALTER TABLE lockkit_once DROP CONSTRAINT lockkit_once_pkey",
        "ALTER TABLE lockkit_once ALTER COLUMN expires_at TYPE bigint USING 1",
    ] {
        let fixture = postgres::Fresh::start().await;
        fixture.sql(change).await;
        reported(&fixture.other(), "SCHEMA_POSTGRES").await;
        let created = once::create_table(&fixture.other()).await;
        assert!(created.expect_err(change).is_misconfigured());
    }
}

#[tokio::test]
async fn a_user_without_rights_is_reported() {
    needs!(postgres);
    let fixture = postgres::Fresh::start().await;
    fixture.sql("CREATE ROLE guest LOGIN").await;
    fixture.sql("GRANT SELECT ON lockkit_once TO guest").await;
    reported(
        &fixture.of_user("guest"),
        "SELECT, INSERT, UPDATE and DELETE",
    )
    .await;
    fixture
        .sql("GRANT INSERT, UPDATE, DELETE ON lockkit_once TO guest")
        .await;
    once::check(&fixture.of_user("guest"))
        .await
        .expect("all rights");
}

#[tokio::test]
async fn a_database_that_is_read_only_is_reported() {
    needs!(postgres);
    let fixture = postgres::Fresh::start().await;
    fixture
        .sql("ALTER ROLE locks SET default_transaction_read_only = on")
        .await;
    reported(&fixture.other(), "primary").await;
}

#[tokio::test]
async fn a_table_that_a_crash_empties_and_a_default_that_admits_a_claim_alone_are_reported() {
    needs!(postgres);
    for (change, advice) in [
        ("ALTER TABLE lockkit_once SET UNLOGGED", "SET LOGGED"),
        (
            "ALTER ROLE locks SET default_transaction_deferrable = on",
            "default_transaction_deferrable",
        ),
    ] {
        let fixture = postgres::Fresh::start().await;
        fixture.sql(change).await;
        let error = once::check(&fixture.other()).await.expect_err(change);
        assert!(error.is_misconfigured(), "{error} {:?}", error.kind());
        assert!(error.to_string().contains(advice), "{error}");
    }
}

#[tokio::test]
async fn a_database_that_is_down_is_unavailable() {
    needs!(postgres);
    let fixture = postgres::Fresh::start().await;
    let db = fixture.of_user("locks");
    drop(fixture);
    let error = once::check(&db).await.expect_err("no server");
    assert!(
        error.is_unavailable() && !error.is_outcome_unknown(),
        "{error}"
    );
}
