//! The routes, and the layer that replays answers.

use std::error::Error;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Json, Router};
use lock_core::LockManager;
use lock_tower::{InFlight, KeyTemplate, LockContext, LockLayer, Replay};
use serde::Deserialize;

use crate::db::{Db, Payment, Table};

/// The time that the receipt's way to the mail server takes.
const RECEIPT: Duration = Duration::from_millis(20);

/// Builds the router, and the counter of payments under way, which end before the process does.
pub(crate) fn router(locks: &LockManager, db: Db) -> Result<(Router, InFlight), Box<dyn Error>> {
    let key = KeyTemplate::new("pay:<route>:<ext.customer>:<idempotency-key>")
        .extension("customer", |customer: &Customer| customer.0.clone());
    let once = LockLayer::template(locks.clone(), key)?
        .ttl(Duration::from_secs(5))
        .replay(Replay::default())?;
    let under_way = once.in_flight();
    let router = Router::new()
        .route("/payments", post(pay).get(list))
        .layer(Extension(Table::Payments))
        .merge(
            Router::new()
                .route("/unguarded/payments", post(pay).get(list))
                .layer(Extension(Table::Unguarded)),
        )
        .route_layer(once)
        // Outside of the lock layer, because the customer is a part of the key.
        .route_layer(from_fn(authenticate))
        .with_state(db);
    Ok((router, under_way))
}

#[derive(Deserialize)]
struct Order {
    amount: u32,
}

/// Takes the payment, and then mails a receipt.
async fn pay(
    State(db): State<Db>,
    Extension(table): Extension<Table>,
    lock: LockContext,
    Json(order): Json<Order>,
) -> Result<(StatusCode, Json<Payment>), Unavailable> {
    let operation = lock
        .operation_id()
        .expect("the layer lets no request without a key pass");
    let paid = db.pay(table, operation.to_string(), order.amount).await;
    tokio::time::sleep(RECEIPT).await;
    Ok((StatusCode::CREATED, Json(paid.map_err(Unavailable)?)))
}

async fn list(
    State(db): State<Db>,
    Extension(table): Extension<Table>,
) -> Result<Json<Vec<Payment>>, Unavailable> {
    db.list(table).await.map(Json).map_err(Unavailable)
}

/// The customer that a real service would read from a verified token.
#[derive(Clone)]
struct Customer(String);

/// Stands in for real authentication: it trusts the header `x-customer`.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let customer = request.headers().get("x-customer");
    let Some(customer) = customer.and_then(|value| value.to_str().ok()) else {
        return (StatusCode::UNAUTHORIZED, "send a header x-customer\n").into_response();
    };
    let customer = Customer(customer.to_owned());
    request.extensions_mut().insert(customer);
    next.run(request).await
}

/// The database failed. The payment may have been taken, so the client sends the same key again.
struct Unavailable(rusqlite::Error);

impl IntoResponse for Unavailable {
    fn into_response(self) -> Response {
        eprintln!("payments: {}", self.0);
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "send the same request again\n",
        )
            .into_response()
    }
}
