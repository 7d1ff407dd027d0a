//! Tests a handler behind the layer that checks the lock of its request inside its own transaction.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use lock_core::{ErrorKind, LockManager};
use lock_tests::{SqlServer, needs, wait};
use lock_tower::{LockContext, LockLayer, MissingKey};
use tokio::sync::Semaphore;
use tokio_postgres::NoTls;
use tower::ServiceExt;

use super::{long, manager, table, taken};

/// The shop's database, and a gate between a handler's read and its transaction.
#[derive(Clone)]
struct Shop {
    url: Arc<str>,
    gate: Arc<Semaphore>,
}

/// Reads the stock, and writes a smaller one in a transaction that checks the lock.
async fn sell(State(shop): State<Shop>, lock: LockContext) -> StatusCode {
    let (mut client, connection) = tokio_postgres::connect(&shop.url, NoTls).await.expect("on");
    tokio::spawn(connection);
    let read = client.query_one("SELECT amount FROM stock", &[]).await;
    let amount: i64 = read.expect("a row").get(0);
    shop.gate.acquire().await.expect("open").forget();
    let (Some(key), Some(fence)) = (lock.key(), lock.fencing_token().map(i64::from)) else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    let tx = client.transaction().await.expect("a transaction");
    let sql = lock.check_sql().expect("locks in PostgreSQL");
    let found = tx.query_opt(sql, &[&key, &fence]).await.expect("an answer");
    if found.is_none() {
        return StatusCode::CONFLICT;
    }
    let write = "UPDATE stock SET amount = $1";
    tx.execute(write, &[&(amount - 1)]).await.expect("a row");
    tx.commit().await.expect("a commit");
    StatusCode::CREATED
}

/// A shop with one item, and its service.
async fn opened() -> (SqlServer, Shop, Router) {
    let server = SqlServer::postgres();
    server.sql("CREATE TABLE stock (amount bigint NOT NULL); INSERT INTO stock VALUES (1)");
    let locks = manager(server.url()).await;
    let layer = LockLayer::template(locks, "stock:<param.sku>").expect("a template");
    let shop = Shop {
        url: server.url().into(),
        gate: Arc::new(Semaphore::new(0)),
    };
    let route = post(sell).route_layer(layer.ttl(long()));
    let app = Router::new().route("/sell/{sku}", route);
    (server, shop.clone(), app.with_state(shop))
}

async fn click(app: Router) -> StatusCode {
    let request = Request::post("/sell/42").body(Body::empty());
    let answer = app.oneshot(request.expect("a request")).await;
    answer.expect("an answer").status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_sells_in_the_transaction_that_checks_the_lock_of_its_request() {
    needs!(postgres);
    let (server, shop, app) = opened().await;
    let first = tokio::spawn(click(app.clone()));
    wait::until("the lock is held", || {
        table(&server).ends("stock:42").is_some()
    });
    assert_eq!(click(app).await, StatusCode::CONFLICT, "the second click");
    shop.gate.add_permits(1);
    assert_eq!(first.await.expect("no panic"), StatusCode::CREATED);
    assert_eq!(server.value("SELECT amount FROM stock"), "0");
    table(&server).is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_whose_lock_has_another_owner_writes_nothing() {
    needs!(postgres);
    let (server, shop, app) = opened().await;
    let clicked = tokio::spawn(click(app));
    let table = table(&server);
    wait::until("the lock is held", || table.ends("stock:42").is_some());
    assert!(table.delete("stock:42"), "by hand");
    let next = taken(&manager(server.url()).await, "stock:42", long()).await;
    shop.gate.add_permits(1);
    assert_eq!(clicked.await.expect("no panic"), StatusCode::CONFLICT);
    assert_eq!(server.value("SELECT amount FROM stock"), "1");
    next.release().await.expect("held");
}

#[tokio::test]
async fn a_request_without_a_lock_in_postgresql_has_no_check() {
    let seen = async |lock: LockContext| {
        let error = lock.check_sql().expect_err("no such lock");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        format!("{:?} {error}", lock.key())
    };
    let layer = LockLayer::template(LockManager::in_memory(), "stock:<header.x-sku>");
    let layer = layer.expect("a template").on_missing_key(MissingKey::Pass);
    let app = Router::new().route("/", post(seen).route_layer(layer));
    for (sku, words) in [
        (Some("42"), "Some(\"stock:42\") only a lock on PostgreSQL"),
        (None, "None"),
    ] {
        let mut request = Request::post("/");
        if let Some(sku) = sku {
            request = request.header("x-sku", sku);
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = app.clone().oneshot(request).await.expect("an answer");
        let body = axum::body::to_bytes(answer.into_body(), 4096).await;
        let body = String::from_utf8(body.expect("a body").to_vec()).expect("text");
        assert!(body.starts_with(words), "{body}");
    }
}
