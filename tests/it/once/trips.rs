//! Counts the statements of the kit beside those of a handler.

use std::marker::PhantomData;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use lock_core::LockManager;
use lock_core::once::{Database, Dialect};
use lock_tests::needs;
use lock_tower::{LockLayer, Once, Refused, Replay};
use tokio::sync::Semaphore;
use tower::ServiceExt;

use super::altered::Hooked;
use super::suite::Fixture;
use super::{postgres, sqlite};

/// What a database was asked for, by the first word of each statement.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<&'static str>>>);

impl Asked {
    fn note(&self, statement: &'static str) {
        let word = statement.split_whitespace().next();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(word.expect("a statement"));
    }

    fn take(&self) -> Vec<&'static str> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A service with locks and connections of its own, as another process has them.
struct Server<F> {
    router: Router,
    asked: Asked,
    entered: Arc<Semaphore>,
    leave: Arc<Semaphore>,
    fixture: PhantomData<F>,
}

impl<F: Fixture + 'static> Server<F> {
    async fn start(db: F::Db) -> Self {
        let locks = LockManager::connect("memory:").await.expect("a manager");
        let asked = Asked::default();
        let noted = asked.clone();
        let db = Hooked::new(db, move |sql| {
            noted.note(sql);
            sql
        });
        let layer = LockLayer::template(locks, "pay:<idempotency-key>").expect("a template");
        let replay = Replay::in_database(db).caller_is_in_key();
        let layer = layer.replay(replay).expect("in bounds");
        let (entered, leave) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let handler = {
            let (entered, leave) = (Arc::clone(&entered), Arc::clone(&leave));
            move |once: Once<Hooked<F::Db>>| async move {
                let mut tx = once.begin().await?;
                let sql = "INSERT INTO effects VALUES ('one')";
                F::execute(&mut tx, sql).await.expect("a new effect");
                entered.add_permits(1);
                leave.acquire().await.expect("it stays open").forget();
                Ok::<_, Refused>(StatusCode::CREATED)
            }
        };
        Self {
            router: Router::new().route("/", post(handler)).route_layer(layer),
            asked,
            entered,
            leave,
            fixture: PhantomData,
        }
    }

    async fn status(&self) -> StatusCode {
        let request = Request::post("/").header("idempotency-key", "k");
        let request = request.body(Body::empty()).expect("a request");
        let answer = self.router.clone().oneshot(request).await;
        answer.expect("never fails").status()
    }
}

#[tokio::test]
async fn a_first_request_has_three_statements_beside_those_of_its_handler_and_a_repetition_one() {
    counted::<sqlite::Fresh>().await;
    needs!(postgres);
    counted::<postgres::Fresh>().await;
}

async fn counted<F: Fixture + 'static>() {
    let fixture = F::start().await;
    let server = Server::<F>::start(fixture.db()).await;
    server.leave.add_permits(1);
    assert_eq!(server.status().await, StatusCode::CREATED);
    let of_the_kit = server.asked.take();
    let complete = match fixture.db().dialect() {
        Dialect::Postgres => "WITH",
        _ => "UPDATE",
    };
    // BEGIN and COMMIT are those of the handler.
    assert_eq!(
        of_the_kit,
        ["SELECT", "BEGIN", "INSERT", complete, "COMMIT"]
    );
    assert_eq!(server.status().await, StatusCode::CREATED);
    assert_eq!(server.asked.take(), ["SELECT"]);
    assert_eq!(fixture.effects().await, 1);
}

#[tokio::test]
async fn a_repetition_beside_the_first_has_five_statements_in_another_process_without_redis() {
    needs!(postgres);
    let fixture = postgres::Fresh::start().await;
    let first = Server::<postgres::Fresh>::start(fixture.db()).await;
    let second = Server::<postgres::Fresh>::start(fixture.other()).await;
    let beside = async {
        first
            .entered
            .acquire()
            .await
            .expect("it stays open")
            .forget();
        // The lock of the same process refuses it without the database.
        first.asked.take();
        assert_eq!(first.status().await, StatusCode::CONFLICT);
        assert!(first.asked.take().is_empty());
        assert_eq!(second.status().await, StatusCode::CONFLICT);
        let asked = second.asked.take();
        assert_eq!(asked, ["SELECT", "BEGIN", "INSERT", "SELECT", "ROLLBACK"]);
        first.leave.add_permits(1);
    };
    let (status, ()) = tokio::time::timeout(Duration::from_secs(20), async {
        tokio::join!(first.status(), beside)
    })
    .await
    .expect("in bounded time");
    assert_eq!(status, StatusCode::CREATED);
}
