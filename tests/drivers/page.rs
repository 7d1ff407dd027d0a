//! The code of the page `in_database` of lock-tower's documentation, on a real PostgreSQL.

#[rustfmt::skip] // the page has wider lines
mod page {
    use super::{ApiError, Order, Payment, User};

    // page begins
    use axum::{Json, Router, http::StatusCode, routing::post};
    use lock_core::LockManager;
    use lock_tower::{KeyTemplate, LockLayer, Once, Replay};
    use sqlx::PgPool;

    lock_core::once_sqlx!(pub struct Db(sqlx::Postgres)); // your version of sqlx; or `sqlx::Sqlite`

    async fn pay(once: Once<Db>, Json(order): Json<Order>) -> Result<(StatusCode, Json<Payment>), ApiError> {
        let mut tx = once.begin().await?; // was: pool.begin()
        let payment = sqlx::query_as("INSERT INTO payments (amount) VALUES ($1) RETURNING id, amount")
            .bind(order.amount)
            .fetch_one(&mut *tx)
            .await?;
        Ok((StatusCode::CREATED, Json(payment))) // no commit: the layer commits before it answers
    }

    pub async fn router(locks: LockManager, pool: PgPool) -> Result<Router, Box<dyn std::error::Error>> {
        let db = Db(pool);
        lock_core::once::create_table(&db).await?; // or its migration
        let key = KeyTemplate::new("pay:<ext.user>:<idempotency-key>")
            .extension("user", |user: &User| user.id);
        let layer = LockLayer::template(locks, key)?.replay(Replay::in_database(db))?;
        Ok(Router::new().route("/payments", post(pay)).route_layer(layer))
    }
    // page ends
}

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use lock_core::LockManager;
use lock_tests::SqlServer;
use serde::{Deserialize, Serialize};
use sqlx::Executor;
use tower::ServiceExt;

/// The user, as an outer layer has found it.
#[derive(Clone, Debug)]
pub struct User {
    id: u64,
}

/// What the client sends.
#[derive(Debug, Deserialize)]
pub struct Order {
    amount: i64,
}

/// The answer.
#[derive(Debug, Serialize, sqlx::FromRow)]
pub struct Payment {
    id: i64,
    amount: i64,
}

/// What a handler fails with.
#[derive(Debug)]
pub enum ApiError {
    /// The layer has refused the transaction, and replaces the answer.
    Refused(lock_tower::Refused),
    /// A statement has failed.
    Database(sqlx::Error),
}

impl From<lock_tower::Refused> for ApiError {
    fn from(refused: lock_tower::Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(refused) => refused.into_response(),
            Self::Database(error) => {
                (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
            }
        }
    }
}

#[test]
fn the_page_has_this_code() {
    let here = include_str!("page.rs");
    let (_, code) = here.split_once("// page begins\n").expect("a begin");
    let (code, _) = code.split_once("    // page ends\n").expect("an end");
    let code: String = code
        .lines()
        .map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line)))
        .collect();
    let page = include_str!("../../lock-tower/src/docs/in_database.md");
    assert!(
        page.contains(&code),
        "the page has other code than:\n{code}"
    );
}

#[tokio::test]
async fn a_payment_is_taken_once_and_its_answer_is_repeated() {
    lock_tests::needs!(postgres);
    let server = SqlServer::postgres();
    let pool = sqlx::PgPool::connect(server.url()).await.expect("a server");
    let table = "CREATE TABLE payments (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, amount bigint NOT NULL)";
    pool.execute(table).await.expect("a new table");
    let locks = LockManager::in_memory();
    let router = page::router(locks, pool.clone())
        .await
        .expect("a valid layer");
    let router = router.layer(axum::Extension(User { id: 7 }));
    let mut answers = Vec::new();
    for _ in 0..2 {
        let request = Request::post("/payments")
            .header("idempotency-key", "6f1c9a3e")
            .header("content-type", "application/json")
            .body(Body::from(r#"{"amount":10}"#));
        let answer = router
            .clone()
            .oneshot(request.expect("a request"))
            .await
            .expect("an answer");
        assert_eq!(answer.status(), StatusCode::CREATED);
        let replayed = answer.headers().contains_key("idempotency-replayed");
        let body = axum::body::to_bytes(answer.into_body(), 1024)
            .await
            .expect("a body");
        answers.push((replayed, body));
    }
    assert_eq!(answers[0].1, answers[1].1);
    assert_eq!((answers[0].0, answers[1].0), (false, true));
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM payments")
        .fetch_one(&pool)
        .await
        .expect("a count");
    assert_eq!(count, 1);
    pool.close().await;
}
