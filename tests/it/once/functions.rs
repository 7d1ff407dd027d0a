//! Functions with `#[idempotent(tx = …)]`, in the transactions of their callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lock_core::once::{self, Database as _, Dialect, Tx};
use lock_core::{Error, OperationId, idempotent};
use lock_tower::{Rejection, RejectionKind};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::suite::{Fixture, effect};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sent {
    run: u64,
    text: String,
}

/// The number of runs, which the body sees.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicU64>);

impl Runs {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn so_far(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[idempotent(key = "mail:<message>", remember = "7d", fingerprint = "<text>", tx = tx)]
async fn send<F: Fixture>(
    tx: &mut Tx<F::Db>,
    message: u64,
    text: &str,
    runs: &Runs,
) -> Result<Sent, Error> {
    let run = runs.next();
    effect::<F>(tx).await;
    tokio::task::yield_now().await;
    Ok(Sent {
        run,
        text: text.to_owned(),
    })
}

#[idempotent(key = "mail:<message>", remember = "7d", fingerprint = none, wait = "60s", tx = tx)]
async fn send_or_wait<F: Fixture>(
    tx: &mut Tx<F::Db>,
    message: u64,
    runs: Runs,
) -> Result<Sent, Error> {
    let run = runs.next();
    effect::<F>(tx).await;
    let text = "waited".to_owned();
    Ok(Sent { run, text })
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Failed {
    Final,
    Passing,
    Refused(String),
}

#[idempotent(
    key = "fails:<message>",
    remember = forever,
    fingerprint = none,
    errors = |error| *error == Failed::Final,
    on_error = |error| Err(Failed::Refused(error.code().to_owned())),
    tx = tx,
)]
async fn fails<F: Fixture>(tx: &mut Tx<F::Db>, message: u64, with: Failed) -> Result<u64, Failed> {
    effect::<F>(tx).await;
    match with {
        Failed::Refused(_) => Ok(message),
        with => Err(with),
    }
}

#[idempotent(key = "large:<message>", remember = "1h", fingerprint = none, tx = tx)]
async fn large<F: Fixture>(
    tx: &mut Tx<F::Db>,
    message: u64,
    bytes: usize,
) -> Result<String, Error> {
    effect::<F>(tx).await;
    Ok("x".repeat(bytes))
}

#[idempotent(key = "mail:<message>", remember = "1h", tx = tx)]
async fn of_another_type<F: Fixture>(tx: &mut Tx<F::Db>, message: u64) -> Result<u64, Error> {
    panic!("the effect of {message} is done, and {tx:?} is not used")
}

#[idempotent(key = "nested:<message>", remember = "1h", tx = tx)]
async fn nested<F: Fixture>(tx: &mut Tx<F::Db>, message: u64) -> Result<u64, Error> {
    let inside = Box::pin(nested::<F>(tx, message)).await;
    let refused = inside.expect_err("it would wait for itself");
    assert!(refused.is_invalid(), "{refused}");
    assert_eq!(refused.key(), Some("nested:1"));
    let runs = Runs::default();
    Ok(message + send::<F>(tx, 7, "inner", &runs).await?.run)
}

#[idempotent(key = "hangs", remember = "1h", fingerprint = none, tx = tx)]
async fn hangs<F: Fixture>(tx: &mut Tx<F::Db>, begun: &Notify) -> Result<(), Error> {
    effect::<F>(tx).await;
    begun.notify_one();
    std::future::pending().await
}

#[idempotent(key = "swallows", remember = "1h", tx = tx)]
async fn swallows<F: Fixture>(tx: &mut Tx<F::Db>) -> Result<(), Error> {
    let failed = F::execute(tx, "INSERT INTO no_such_table VALUES ('1')").await;
    assert!(failed.is_err());
    Ok(())
}

async fn begin<F: Fixture>(fixture: &F) -> Tx<F::Db> {
    Tx::begin(&fixture.db()).await.expect("a transaction")
}

/// Calls and commits.
async fn sent<F: Fixture>(fixture: &F, text: &str, runs: &Runs) -> Result<Sent, Error> {
    let mut tx = begin(fixture).await;
    let sent = send::<F>(&mut tx, 7, text, runs).await?;
    tx.commit().await?;
    Ok(sent)
}

pub(crate) async fn a_second_call_returns_the_committed_result_and_does_not_run<F: Fixture>() {
    let fixture = F::start().await;
    let runs = Runs::default();
    let first = sent(&fixture, "hello", &runs).await.expect("granted");
    for _ in 0..2 {
        let again = sent(&fixture, "hello", &runs).await;
        assert_eq!(again.expect("kept"), first);
    }
    assert_eq!((runs.so_far(), fixture.effects().await), (1, 1));
}

pub(crate) async fn a_call_whose_transaction_is_rolled_back_runs_again<F: Fixture>() {
    let fixture = F::start().await;
    let runs = Runs::default();
    let mut tx = begin(&fixture).await;
    send::<F>(&mut tx, 7, "hello", &runs)
        .await
        .expect("granted");
    tx.rollback().await.expect("an answer");
    assert_eq!(fixture.effects().await, 0);
    assert_eq!(sent(&fixture, "hello", &runs).await.expect("free").run, 2);
    assert_eq!(fixture.effects().await, 1);
}

pub(crate) async fn another_call_with_the_key_is_reused<F: Fixture>() {
    let fixture = F::start().await;
    let runs = Runs::default();
    sent(&fixture, "hello", &runs).await.expect("granted");
    let error = sent(&fixture, "bye", &runs)
        .await
        .expect_err("another text");
    assert!(
        error.is_reused() && error.key() == Some("mail:7"),
        "{error}"
    );
    assert_eq!((runs.so_far(), fixture.effects().await), (1, 1));
}

pub(crate) async fn a_result_of_another_type_is_unreadable_and_never_runs<F: Fixture>() {
    let fixture = F::start().await;
    let runs = Runs::default();
    sent(&fixture, "hello", &runs).await.expect("granted");
    let mut tx = begin(&fixture).await;
    let error = of_another_type::<F>(&mut tx, 7).await.expect_err("text");
    assert!(error.is_unreadable(), "{error}");
}

pub(crate) async fn a_result_that_is_too_large_is_done<F: Fixture>() {
    let fixture = F::start().await;
    let mut tx = begin(&fixture).await;
    let first = large::<F>(&mut tx, 1, 2 << 20).await.expect("granted");
    assert_eq!(first.len(), 2 << 20);
    tx.commit().await.expect("done");
    let mut tx = begin(&fixture).await;
    let error = large::<F>(&mut tx, 1, 1).await.expect_err("done");
    assert_eq!((error.code(), error.retry_after()), ("lock_done", None));
    assert_eq!(Rejection::from(&error).kind(), RejectionKind::Done);
    tx.rollback().await.expect("an answer");
    assert_eq!(fixture.effects().await, 1);
}

pub(crate) async fn a_failed_call_that_is_committed_nevertheless_is_not_remembered<F: Fixture>() {
    let fixture = F::start().await;
    for effects in 1..=2 {
        let mut tx = begin(&fixture).await;
        let failed = fails::<F>(&mut tx, 1, Failed::Passing).await;
        assert_eq!(failed, Err(Failed::Passing));
        tx.commit().await.expect("the claim was given back");
        assert_eq!(
            (fixture.effects().await, fixture.records().await),
            (effects, 0)
        );
    }
}

pub(crate) async fn an_error_that_counts_as_final_is_remembered<F: Fixture>() {
    let fixture = F::start().await;
    for with in [
        Failed::Final,
        Failed::Passing,
        Failed::Refused(String::new()),
    ] {
        let mut tx = begin(&fixture).await;
        assert_eq!(fails::<F>(&mut tx, 1, with).await, Err(Failed::Final));
        tx.commit().await.expect("done");
    }
    assert_eq!(fixture.effects().await, 1);
}

pub(crate) async fn a_call_that_is_dropped_lets_nothing_be_committed<F: Fixture>() {
    let fixture = F::start().await;
    let begun = Notify::new();
    let mut tx = begin(&fixture).await;
    tokio::select! {
        _ = hangs::<F>(&mut tx, &begun) => unreachable!("the body hangs"),
        () = begun.notified() => {}
    }
    let error = tx.commit().await.expect_err("half of an effect");
    assert!(error.is_invalid(), "{error}");
    assert_eq!((fixture.effects().await, fixture.records().await), (0, 0));
}

pub(crate) async fn a_call_inside_its_own_run_is_invalid_and_another_one_commits_with_it<
    F: Fixture,
>() {
    let fixture = F::start().await;
    let mut tx = begin(&fixture).await;
    assert_eq!(nested::<F>(&mut tx, 1).await.expect("granted"), 2);
    // In the same transaction, the first result is there already.
    assert_eq!(nested::<F>(&mut tx, 1).await.expect("kept"), 2);
    tx.commit().await.expect("both");
    assert_eq!((fixture.effects().await, fixture.records().await), (1, 2));
}

pub(crate) async fn a_call_beside_an_open_transaction_is_busy_or_waits_for_its_result<
    F: Fixture,
>() {
    let fixture = F::start().await;
    let runs = Runs::default();
    let mut first = begin(&fixture).await;
    send_or_wait::<F>(&mut first, 7, runs.clone())
        .await
        .expect("granted");
    // In SQLite, another transaction waits for its begin.
    if fixture.db().dialect() == Dialect::Postgres {
        let mut other = begin(&fixture).await;
        let error = send::<F>(&mut other, 7, "hello", &runs).await;
        let error = error.expect_err("open");
        assert!(error.is_busy() && !error.is_cooling_down(), "{error}");
        other.commit().await.expect("nothing was claimed");
    }
    let (other, waiting) = (fixture.other(), runs.clone());
    let second = tokio::spawn(async move {
        let mut tx = Tx::begin(&other).await.expect("a transaction");
        send_or_wait::<F>(&mut tx, 7, waiting).await
    });
    first.commit().await.expect("done");
    let second = second.await.expect("no panic").expect("kept");
    assert_eq!((second.run, runs.so_far()), (1, 1));
}

pub(crate) async fn twenty_deliveries_have_one_effect<F: Fixture>() {
    let fixture = F::start().await;
    let runs = Runs::default();
    let deliveries: Vec<_> = (0..20)
        .map(|_| {
            let (db, runs) = (fixture.db(), runs.clone());
            tokio::spawn(async move {
                let mut tx = Tx::begin(&db).await?;
                let sent = send_or_wait::<F>(&mut tx, 7, runs).await?;
                tx.commit().await?;
                Ok::<_, Error>(sent.run)
            })
        })
        .collect();
    for delivery in deliveries {
        assert_eq!(delivery.await.expect("no panic").expect("one run"), 1);
    }
    assert_eq!((runs.so_far(), fixture.effects().await), (1, 1));
}

pub(crate) async fn a_forgotten_and_an_expired_result_run_again<F: Fixture>() {
    let fixture = F::start().await;
    let runs = Runs::default();
    sent(&fixture, "hello", &runs).await.expect("granted");
    let operation = OperationId::of_function("mail:7");
    assert!(
        once::forget(&fixture.db(), operation)
            .await
            .expect("an answer")
    );
    assert_eq!(sent(&fixture, "hello", &runs).await.expect("free").run, 2);
    fixture.expire().await;
    assert_eq!(sent(&fixture, "bye", &runs).await.expect("free").run, 3);
}

/// PostgreSQL would answer such a COMMIT as if it had been done.
pub(crate) async fn a_body_that_swallows_a_failed_statement_has_no_result_where_it_is_undone<
    F: Fixture,
>() {
    let fixture = F::start().await;
    let mut tx = begin(&fixture).await;
    let called = swallows::<F>(&mut tx).await;
    if fixture.db().dialect() == Dialect::Postgres {
        assert!(
            called
                .expect_err("the transaction has failed")
                .is_unavailable()
        );
        assert!(tx.commit().await.expect_err("open").is_invalid());
        assert_eq!(fixture.records().await, 0);
    } else {
        called.expect("SQLite undoes the statement only");
        tx.commit().await.expect("done");
        assert_eq!(fixture.records().await, 1);
    }
}

/// Makes each case a test on a database.
macro_rules! on_database {
    ($name:ident, $fixture:ty, $needs:tt => $($case:ident,)*) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    $needs
                    super::$case::<$fixture>().await;
                }
            )*
        }
    };
}

macro_rules! on_every_database {
    ($($case:ident,)*) => {
        on_database! { sqlite, crate::once::sqlite::Fresh, {} => $($case,)* }
        on_database! { postgres, crate::once::postgres::Fresh, { lock_tests::needs!(postgres); } => $($case,)* }
    };
}

on_every_database! {
    a_second_call_returns_the_committed_result_and_does_not_run,
    a_call_whose_transaction_is_rolled_back_runs_again,
    another_call_with_the_key_is_reused,
    a_result_of_another_type_is_unreadable_and_never_runs,
    a_result_that_is_too_large_is_done,
    a_failed_call_that_is_committed_nevertheless_is_not_remembered,
    an_error_that_counts_as_final_is_remembered,
    a_call_that_is_dropped_lets_nothing_be_committed,
    a_call_inside_its_own_run_is_invalid_and_another_one_commits_with_it,
    a_call_beside_an_open_transaction_is_busy_or_waits_for_its_result,
    twenty_deliveries_have_one_effect,
    a_forgotten_and_an_expired_result_run_again,
    a_body_that_swallows_a_failed_statement_has_no_result_where_it_is_undone,
}
