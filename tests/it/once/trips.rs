//! Counts the statements of the kit beside those of a handler.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use lock_core::LockManager;
use lock_core::once::{CommitError, Database, Dialect, Row, Value};
use lock_tests::needs;
use lock_tower::{LockLayer, Once, Refused, Replay};
use tokio::sync::Semaphore;
use tower::ServiceExt;

use super::suite::Fixture;
use super::{postgres, sqlite};

/// A database that lists what it is asked for, by the first word of each statement.
#[derive(Clone)]
struct Counted<D> {
    db: D,
    asked: Asked,
}

#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<&'static str>>>);

/// A transaction of a database that counts.
struct Open<T> {
    tx: T,
    asked: Asked,
}

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

impl<D: Database> Database for Counted<D> {
    type Tx = Open<D::Tx>;
    type Connection = D::Connection;
    type Error = D::Error;

    fn dialect(&self) -> Dialect {
        self.db.dialect()
    }

    async fn begin(&self, statement: &'static str) -> Result<Open<D::Tx>, D::Error> {
        self.asked.note(statement);
        let tx = self.db.begin(statement).await?;
        let asked = self.asked.clone();
        Ok(Open { tx, asked })
    }

    async fn begin_and_execute(
        &self,
        begin: &'static str,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<(Open<D::Tx>, u64), D::Error> {
        self.asked.note(begin);
        self.asked.note(statement);
        let (tx, rows) = self.db.begin_and_execute(begin, statement, values).await?;
        let asked = self.asked.clone();
        Ok((Open { tx, asked }, rows))
    }

    async fn read(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, D::Error> {
        self.asked.note(statement);
        self.db.read(statement, values).await
    }

    async fn query(
        tx: &mut Open<D::Tx>,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, D::Error> {
        tx.asked.note(statement);
        D::query(&mut tx.tx, statement, values).await
    }

    async fn execute(
        tx: &mut Open<D::Tx>,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, D::Error> {
        tx.asked.note(statement);
        D::execute(&mut tx.tx, statement, values).await
    }

    fn connection(tx: &mut Open<D::Tx>) -> &mut D::Connection {
        D::connection(&mut tx.tx)
    }

    fn connection_ref(tx: &Open<D::Tx>) -> &D::Connection {
        D::connection_ref(&tx.tx)
    }

    async fn commit(tx: Open<D::Tx>) -> Result<(), D::Error> {
        tx.asked.note("COMMIT");
        D::commit(tx.tx).await
    }

    async fn execute_and_commit(
        tx: Open<D::Tx>,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<(), CommitError<D::Error>> {
        tx.asked.note(statement);
        tx.asked.note("COMMIT");
        D::execute_and_commit(tx.tx, statement, values).await
    }

    async fn rollback(tx: Open<D::Tx>) -> Result<(), D::Error> {
        tx.asked.note("ROLLBACK");
        D::rollback(tx.tx).await
    }

    fn code<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<Cow<'a, str>> {
        D::code(error)
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
        let db = Counted {
            db,
            asked: asked.clone(),
        };
        let layer = LockLayer::template(locks, "pay:<idempotency-key>").expect("a template");
        let replay = Replay::in_database(db).caller_is_in_key();
        let layer = layer.replay(replay).expect("in bounds");
        let (entered, leave) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let handler = {
            let (entered, leave) = (Arc::clone(&entered), Arc::clone(&leave));
            move |once: Once<Counted<F::Db>>| async move {
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
