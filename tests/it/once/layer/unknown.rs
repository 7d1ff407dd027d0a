//! Databases that are away, and COMMITs that are not answered.

use axum::body::Body;
use http::Request;
use http::StatusCode;
use lock_tower::{LockContext, MissingKey, Once, Remember, Replay};

use super::stage::{Db, Stage, app, pay, request, send};
use super::staged::OnCommit;
use crate::once::suite::Fixture;

pub(super) async fn a_commit_that_was_not_sent_is_503_and_runs_again<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let app = app(stage.layer(), pay::<F>);
    stage.db.on_commit(OnCommit::IsNotSent);
    let failed = send(&app, request("")).await;
    failed
        .is_refused(503, "lock_unavailable")
        .retries(Some("1"));
    stage.has(0, 0).await;
    send(&app, request("")).await.is(201);
    stage.has(1, 1).await;
}

pub(super) async fn a_commit_whose_answer_is_lost_is_answered<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let app = app(stage.layer(), pay::<F>);
    stage.db.on_commit(OnCommit::IsNotAnswered);
    let first = send(&app, request("")).await;
    first.is(201);
    send(&app, request("")).await.repeats(&first);
    stage.has(1, 1).await;
}

pub(super) async fn a_database_that_is_away_leaves_the_outcome_unknown<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let away = app(stage.layer(), pay::<F>);
    stage.db.on_commit(OnCommit::IsNotAnswered);
    // The transaction of the request, and not the claim that asks for its outcome.
    stage.db.ends_after(1);
    let unknown = send(&away, request("")).await;
    unknown
        .is_refused(503, "lock_outcome_unknown")
        .retries(Some("1"));
    // The database is back, and the repetition finds out.
    let app = app(stage.other(), pay::<F>);
    let repeated = send(&app, request("")).await;
    assert_eq!(repeated.status, StatusCode::CREATED);
    assert_eq!(repeated.headers["idempotency-replayed"], "true");
    stage.has(1, 1).await;
}

/// A granted claim says only that the transaction has ended, because it leaves no row if it was committed.
pub(super) async fn an_unknown_commit_without_a_record_or_a_key_stays_unknown<
    F: Fixture + 'static,
>() {
    let stage = Stage::<F>::start().await;
    let replay = Replay::in_database(stage.db.clone()).remember_with(|_| Remember::Nothing);
    let forgetful = app(stage.layer_of(replay), pay::<F>);
    stage.db.on_commit(OnCommit::IsNotAnswered);
    let unknown = send(&forgetful, request("")).await;
    unknown
        .is_refused(503, "lock_outcome_unknown")
        .retries(Some("1"));
    stage.has(1, 0).await;

    let keyless = app(stage.layer().on_missing_key(MissingKey::Pass), pay::<F>);
    stage.db.on_commit(OnCommit::IsNotAnswered);
    let request = Request::post("/payments")
        .body(Body::empty())
        .expect("a request");
    let unknown = send(&keyless, request).await;
    // A repetition would run.
    unknown
        .is_refused(503, "lock_outcome_unknown")
        .retries(None);
    stage.has(2, 0).await;
}

pub(super) async fn an_error_that_is_recorded_alone_is_resolved_too<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let declining = |lock: LockContext| async move {
        lock.remember(Remember::Answer);
        (StatusCode::PAYMENT_REQUIRED, "declined")
    };
    let app = app(stage.layer(), declining);
    stage.db.on_commit(OnCommit::IsNotSent);
    let failed = send(&app, request("")).await;
    failed.is_refused(503, "lock_unavailable");
    stage.has(0, 0).await;

    stage.db.on_commit(OnCommit::IsNotAnswered);
    let first = send(&app, request("")).await;
    first.is(402);
    send(&app, request("")).await.repeats(&first);
    stage.has(0, 1).await;
}

pub(super) async fn a_database_that_is_away_before_the_commit_is_503<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let away = stage.db.clone();
    let late = move |once: Once<Db<F>>, order: String| async move {
        away.ends_after(0);
        pay::<F>(once, order).await
    };
    let late = app(stage.layer(), late);
    for moment in ["at begin", "at the peek"] {
        let refused = send(&late, request("")).await;
        refused
            .is_refused(503, "lock_unavailable")
            .retries(Some("1"));
        assert_eq!(stage.db.begun(), 0, "{moment}");
    }
    stage.has(0, 0).await;
}
