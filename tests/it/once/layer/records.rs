//! The bytes of records, and their life.

use std::time::Duration;

use http::StatusCode;
use lock_tower::{LockContext, Once, Replay, Seal};

use super::log::ThisThread;
use super::stage::{Db, MINUTE, Stage, app, pay, request, send};
use crate::once::suite::Fixture;

/// A cipher that is good enough for a test.
struct Mirror;

impl Seal for Mirror {
    fn seal(&self, context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let sealed = plain.iter().rev().chain(context);
        Some(sealed.map(|byte| !byte).collect())
    }

    fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let plain: Vec<u8> = sealed.iter().map(|byte| !byte).collect();
        let plain = plain.strip_suffix(context)?;
        Some(plain.iter().rev().copied().collect())
    }
}

pub(super) async fn a_sealed_record_opens<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let replay = || Replay::in_database(stage.db.clone());
    let sealed = app(stage.layer_of(replay().sealed(Mirror)), pay::<F>);
    let first = send(&sealed, request("tea")).await;
    send(&sealed, request("tea")).await.repeats(&first);
    let row = stage
        .fixture
        .sql("SELECT run, record FROM lockkit_once")
        .await;
    let record = row.and_then(|row| row.record).expect("a record");
    assert!(!record.windows(3).any(|bytes| bytes == b"tea"));
    // A layer without the seal must not run it again.
    let open = app(stage.layer(), pay::<F>);
    send(&open, request("tea"))
        .await
        .is_refused(500, "lock_unreadable");
    stage.has(1, 1).await;
}

pub(super) async fn an_unreadable_record_is_500_and_never_runs<F: Fixture + 'static>() {
    let log = ThisThread::listen();
    let stage = Stage::<F>::start().await;
    let app = app(stage.layer(), pay::<F>);
    send(&app, request("")).await.is(201);
    // Empty, of another version, and cut off.
    for (number, bytes) in ["X''", "X'02'", "X'0100'"].into_iter().enumerate() {
        let sql = format!("UPDATE lockkit_once SET record = {bytes}");
        stage.fixture.sql(sql.leak()).await;
        let refused = send(&app, request("")).await;
        refused.is_refused(500, "lock_unreadable").retries(None);
        assert_eq!(log.lines("cannot be read").len(), number + 1);
    }
    stage.has(1, 1).await;
}

pub(super) async fn an_expired_record_runs_again<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let app = app(stage.layer(), pay::<F>);
    send(&app, request("")).await.is(201);
    stage.fixture.expire().await;
    let second = send(&app, request("")).await;
    second.is(201);
    stage.has(2, 1).await;
    send(&app, request("")).await.repeats(&second);
}

pub(super) async fn a_cooldown_hides_no_record<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let cooling = |once: Once<Db<F>>, lock: LockContext, order: String| async move {
        lock.cool_down(MINUTE);
        pay::<F>(once, order).await
    };
    let layer = || stage.layer().cooldown(MINUTE);
    let app = app(layer(), cooling);
    let first = send(&app, request("")).await;
    first.is(201);
    send(&app, request("")).await.repeats(&first);

    // It counts for requests of which nothing is remembered.
    stage.fixture.sql("DELETE FROM lockkit_once").await;
    let failing = super::stage::app(layer(), |lock: LockContext| async move {
        lock.cool_down(MINUTE);
        StatusCode::BAD_REQUEST
    });
    send(&failing, request("")).await.is(400);
    let refused = send(&failing, request("")).await;
    refused.is_refused(409, "lock_cooling_down");
}

/// The layer peeks before the handler, whose checks may have another outcome meanwhile.
pub(super) async fn a_record_answers_before_the_handler_is_asked<F: Fixture + 'static>() {
    let stage = Stage::<F>::start().await;
    let first = send(&app(stage.layer(), pay::<F>), request("tea")).await;
    first.is(201);
    let expired = || async { (StatusCode::BAD_REQUEST, "the card has expired") };
    let app = app(stage.layer(), expired);
    send(&app, request("tea")).await.repeats(&first);
    assert_eq!(stage.layer().in_flight().drain(Duration::ZERO).await, 0);
}
