//! The table, and the end of records.

use std::time::Duration;

use lock_core::once::{self, Claimed, Database as _, Dialect, Tx};

use super::{Fixture, claim, done};

pub(crate) async fn a_sweep_beside_a_takeover_deletes_no_live_record<F: Fixture>() {
    let fixture = F::start().await;
    done::<F>(&fixture.db(), &claim("k"), Some(b"old"))
        .await
        .expect("granted");
    fixture.expire().await;
    let new = claim("k");
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    assert_eq!(tx.claim(&new).await.expect("an answer"), Claimed::Granted);
    let other = fixture.other();
    // On SQLite the sweep waits for the other writer.
    let sweep = tokio::spawn(async move { once::sweep(&other).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    tx.complete(&new, Some(b"new")).await.expect("its own");
    tx.commit().await.expect("an answer");
    assert_eq!(sweep.await.expect("no panic").expect("an answer"), 0);
    assert_eq!(fixture.records().await, 1);
}

pub(crate) async fn a_sweep_ends_when_nothing_is_expired<F: Fixture>() {
    let fixture = F::start().await;
    fixture
        .sql(match fixture.db().dialect() {
            Dialect::Postgres => {
                "INSERT INTO lockkit_once SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), '', NULL, now() - interval '1 s' \
                 FROM generate_series(1, 2500) AS n"
            }
            _ => {
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2500) \
                 INSERT INTO lockkit_once SELECT CAST(printf('%016d', n) AS BLOB), '', NULL, 1 FROM n"
            }
        })
        .await;
    done::<F>(&fixture.db(), &claim("k"), Some(b"lives"))
        .await
        .expect("granted");
    assert_eq!(once::sweep(&fixture.db()).await.expect("an answer"), 2_500);
    assert_eq!(once::sweep(&fixture.db()).await.expect("an answer"), 0);
    assert_eq!(fixture.records().await, 1);
}

pub(crate) async fn create_table_runs_in_two_processes_at_once<F: Fixture>() {
    let fixture = F::start().await;
    fixture.sql("DROP TABLE lockkit_once").await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let db = fixture.other();
        tasks.spawn(async move { once::create_table(&db).await });
    }
    for created in tasks.join_all().await {
        created.expect("one of four that create the table at once");
    }
    done::<F>(&fixture.db(), &claim("k"), None)
        .await
        .expect("granted");
}

pub(crate) async fn the_check_leaves_nothing_behind<F: Fixture>() {
    let fixture = F::start().await;
    once::check(&fixture.db())
        .await
        .expect("the table is there");
    assert_eq!(fixture.records().await, 0);
}

pub(crate) async fn a_record_that_is_forgotten_lets_the_operation_run_again<F: Fixture>() {
    let fixture = F::start().await;
    let operation = claim("k").operation();
    done::<F>(&fixture.db(), &claim("k"), Some(b"1"))
        .await
        .expect("granted");
    assert!(
        once::forget(&fixture.db(), operation)
            .await
            .expect("an answer")
    );
    assert!(
        !once::forget(&fixture.db(), operation)
            .await
            .expect("an answer")
    );
    done::<F>(&fixture.db(), &claim("k"), Some(b"2"))
        .await
        .expect("granted");
    assert_eq!(fixture.effects().await, 2);
}
