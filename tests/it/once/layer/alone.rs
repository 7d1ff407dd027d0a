//! What only one of the databases does.

use std::time::Duration;

use http::StatusCode;
use lock_core::Renew;
use lock_core::Wait;
use lock_core::once::{Claimed, Tx};
use lock_tests::{needs, wait};
use lock_tower::{LockContext, Once, Refused};

use super::log::ThisThread;
use super::stage::{Db, Gate, Stage, app, claim_of, effect, pay, request, send};
use super::staged::OnCommit;
use crate::once::suite::Fixture as _;
use crate::once::{postgres, sqlite};

/// COMMIT alone would succeed, and commit nothing.
#[tokio::test]
async fn a_handler_that_swallows_a_failed_statement_answers_503() {
    needs!(postgres);
    let stage = Stage::<postgres::Fresh>::start().await;
    let swallowing = |once: Once<Db<postgres::Fresh>>| async move {
        let mut tx = once.begin().await?;
        effect::<postgres::Fresh, _>(&mut tx).await;
        let failed = postgres::Fresh::execute(&mut tx, "SELECT 1 / 0").await;
        failed.expect_err("a division by zero");
        Ok::<_, Refused>((StatusCode::CREATED, "paid"))
    };
    let refused = send(&app(stage.layer(), swallowing), request("")).await;
    refused
        .is_refused(503, "lock_unavailable")
        .retries(Some("1"));
    stage.has(0, 0).await;
    let paid = send(&app(stage.layer(), pay::<postgres::Fresh>), request("")).await;
    paid.is(201);
    stage.has(1, 1).await;
}

/// The database checks it at COMMIT, whose error counts as unknown like every other.
#[tokio::test]
async fn a_deferred_constraint_that_fails_is_found_rolled_back() {
    needs!(postgres);
    let log = ThisThread::listen();
    let stage = Stage::<postgres::Fresh>::start().await;
    let sql = "CREATE TABLE late (name text UNIQUE DEFERRABLE INITIALLY DEFERRED)";
    stage.fixture.sql(sql).await;
    let twice = |once: Once<Db<postgres::Fresh>>| async move {
        let mut tx = once.begin().await?;
        effect::<postgres::Fresh, _>(&mut tx).await;
        let done = postgres::Fresh::execute(&mut tx, "INSERT INTO late VALUES ('a'), ('a')").await;
        done.expect("it is checked later");
        Ok::<_, Refused>((StatusCode::CREATED, "paid"))
    };
    let refused = send(&app(stage.layer(), twice), request("")).await;
    refused
        .is_refused(503, "lock_unavailable")
        .retries(Some("1"));
    assert_eq!(log.lines("23505").len(), 1);
    stage.has(0, 0).await;
}

#[tokio::test]
async fn a_handler_whose_transaction_sqlite_has_rolled_back_answers_500() {
    let log = ThisThread::listen();
    let stage = Stage::<sqlite::Fresh>::start().await;
    let swallowing = |once: Once<Db<sqlite::Fresh>>| async move {
        let tx = once.begin().await?;
        tx.execute_batch("INSERT INTO effects VALUES ('twice')")
            .expect("a new effect");
        tx.execute_batch("INSERT OR ROLLBACK INTO effects VALUES ('twice')")
            .expect_err("the second one");
        Ok::<_, Refused>((StatusCode::CREATED, "paid"))
    };
    let refused = send(&app(stage.layer(), swallowing), request("")).await;
    refused.is_refused(500, "lock_invalid");
    assert_eq!(log.lines("the claim of this run is gone").len(), 1);
    stage.has(0, 0).await;
}

#[tokio::test]
async fn a_commit_that_is_still_open_is_unknown_and_then_answered() {
    needs!(postgres);
    let stage = Stage::<postgres::Fresh>::start().await;
    let app = app(stage.layer(), pay::<postgres::Fresh>);
    stage.db.on_commit(OnCommit::StaysOpen);
    let unknown = send(&app, request("tea")).await;
    unknown
        .is_refused(503, "lock_outcome_unknown")
        .retries(Some("1"));
    // The repetition may not run beside it.
    send(&app, request("tea"))
        .await
        .is_refused(409, "lock_busy");
    stage.db.commit_open().await;
    let repeated = send(&app, request("tea")).await;
    assert_eq!(repeated.status, StatusCode::CREATED);
    assert_eq!(repeated.headers["idempotency-replayed"], "true");
    stage.has(1, 1).await;
}

/// Two runs beside each other, because the first one has lost its lock.
#[tokio::test]
async fn a_second_owner_is_refused_while_the_first_one_s_transaction_is_open() {
    needs!(postgres);
    let stage = Stage::<postgres::Fresh>::start().await;
    let gate = Gate::new();
    let (inside, clock) = (gate.clone(), stage.clock.clone());
    let paused = move |once: Once<Db<postgres::Fresh>>, lock: LockContext, _: String| async move {
        let mut tx = once.begin().await?;
        effect::<postgres::Fresh, _>(&mut tx).await;
        clock.advance(Duration::from_secs(2));
        assert!(lock.is_lost());
        inside.pass().await;
        Ok::<_, Refused>((StatusCode::CREATED, "paid by the first"))
    };
    let layer = stage.layer().ttl(Duration::from_secs(1)).renew(Renew::Off);
    let (slow, quick) = (
        app(layer.clone(), paused),
        app(layer, pay::<postgres::Fresh>),
    );
    let second = async {
        gate.arrived().await;
        send(&quick, request("tea"))
            .await
            .is_refused(409, "lock_busy");
        gate.open();
    };
    let (first, ()) = tokio::join!(send(&slow, request("tea")), second);
    first.is(201);
    send(&quick, request("tea")).await.repeats(&first);
    stage.has(1, 1).await;
}

/// As in a service without Redis, whose other process has claimed the operation.
#[tokio::test]
async fn a_layer_that_waits_polls_a_busy_claim() {
    needs!(postgres);
    let stage = Stage::<postgres::Fresh>::start().await;
    let refusing = app(stage.layer(), pay::<postgres::Fresh>);
    let waiting = app(stage.layer().wait(wait::PATIENCE), pay::<postgres::Fresh>);
    let claim = claim_of(&stage.locks);
    let mut other = Tx::begin(&stage.fixture.other())
        .await
        .expect("a transaction");
    let claimed = other.claim(&claim).await.expect("an answer");
    assert_eq!(claimed, Claimed::Granted);
    send(&refusing, request(""))
        .await
        .is_refused(409, "lock_busy");

    let begun = stage.db.begun();
    let polled = async {
        wait::eventually("the layer has polled", async || {
            stage.db.begun() > begun + 2
        })
        .await;
        other.complete(&claim, None).await.expect("its claim");
        other.commit().await.expect("an answer");
    };
    let (answer, ()) = tokio::join!(send(&waiting, request("")), polled);
    answer.is_refused(409, "lock_done");

    // A wait that ends has a refusal like any other.
    stage.fixture.expire().await;
    let mut other = Tx::begin(&stage.fixture.other())
        .await
        .expect("a transaction");
    other
        .claim(&claim_of(&stage.locks))
        .await
        .expect("an answer");
    let hasty = stage.layer().wait(Wait::For(Duration::from_millis(60)));
    let hasty = app(hasty, pay::<postgres::Fresh>);
    send(&hasty, request("")).await.is_refused(409, "lock_busy");
    stage.has(0, 1).await;
}

#[tokio::test]
async fn two_layers_of_two_processes_have_one_effect() {
    needs!(postgres);
    let stage = Stage::<postgres::Fresh>::start().await;
    let processes = [
        app(stage.layer(), pay::<postgres::Fresh>),
        app(stage.other(), pay::<postgres::Fresh>),
    ];
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..20 {
        let app = processes[number % 2].clone();
        clients.spawn(async move {
            loop {
                let reply = send(&app, request("tea")).await;
                if reply.status == StatusCode::CREATED {
                    return reply.text;
                }
                reply.is_refused(409, "lock_busy");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
    let mut answers = clients.join_all().await;
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    stage.has(1, 1).await;
}
