//! The routes, and the two layers that repeat answers.

use std::error::Error;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Json, Router};
use lock_core::LockManager;
use lock_core::once::Tx;
use lock_tower::{
    InFlight, KeyTemplate, LockContext, LockLayer, Once, Outage, Refused, Replay, Replaying,
};
use serde::Deserialize;

use crate::store::{Payment, Store, Table};

/// The time that the receipt's way to the mail server takes.
const RECEIPT: Duration = Duration::from_millis(20);

/// Builds the router, and the counters of payments under way, which end before the process does.
pub(crate) fn router<S: Store>(
    locks: &LockManager,
    store: S,
) -> Result<(Router, [InFlight; 2]), Box<dyn Error>> {
    // The release of the lock writes the record of an answer.
    let beside = layer(locks, Replay::default())?;
    // The commit of the payment writes it. While Redis is away no lock is needed, because the database refuses duplicates.
    let together = layer(locks, Replay::in_database(store.clone()))?.on_outage(Outage::Pass);
    let under_way = [beside.in_flight(), together.in_flight()];

    let of = |table| post(pay::<S>).get(list::<S>).layer(Extension(table));
    let once = post(pay_once::<S>)
        .get(list::<S>)
        .layer(Extension(Table::Once));
    let router = Router::new()
        .route("/payments", of(Table::Payments))
        .route("/unguarded/payments", of(Table::Unguarded))
        .route_layer(beside)
        .merge(
            Router::new()
                .route("/once/payments", once)
                .route_layer(together),
        )
        // Outside of the lock layers, because the customer is a part of the key.
        .route_layer(from_fn(authenticate))
        .with_state(store);
    Ok((router, under_way))
}

fn layer(locks: &LockManager, replay: Replay) -> Result<LockLayer<Replaying>, Box<dyn Error>> {
    let key = KeyTemplate::new("pay:<route>:<ext.customer>:<idempotency-key>")
        .extension("customer", |customer: &Customer| customer.0.clone());
    let layer = LockLayer::template(locks.clone(), key)?.ttl(Duration::from_secs(5));
    Ok(layer.replay(replay)?)
}

#[derive(Deserialize)]
struct Order {
    amount: u32,
}

type Paid = (StatusCode, Json<Payment>);

/// Takes the payment, and then mails a receipt.
async fn pay<S: Store>(
    State(store): State<S>,
    Extension(table): Extension<Table>,
    lock: LockContext,
    Json(order): Json<Order>,
) -> Result<Paid, Failure> {
    let mut tx = Tx::begin(&store).await?; // a plain transaction
    let paid = S::pay(&mut tx, table, operation(&lock), order.amount).await;
    let paid = paid.map_err(Failure::of)?;
    tx.commit().await?;
    // A process that is killed here has taken the payment, and has not recorded its answer.
    tokio::time::sleep(RECEIPT).await;
    Ok((StatusCode::CREATED, Json(paid)))
}

/// Takes the payment. The layer commits it with its answer, and then sends the answer.
///
/// No transaction should wait for a mail server, so the receipt would be one more row, which a job mails.
async fn pay_once<S: Store>(
    once: Once<S>,
    lock: LockContext,
    Json(order): Json<Order>,
) -> Result<Paid, Failure> {
    let mut tx = once.begin().await?;
    let paid = S::pay(&mut tx, Table::Once, operation(&lock), order.amount).await;
    Ok((StatusCode::CREATED, Json(paid.map_err(Failure::of)?)))
}

fn operation(lock: &LockContext) -> String {
    let operation = lock.operation_id();
    let operation = operation.expect("the layer lets no request without a key pass");
    operation.to_string()
}

async fn list<S: Store>(
    State(store): State<S>,
    Extension(table): Extension<Table>,
) -> Result<Json<Vec<Payment>>, Failure> {
    store.list(table).await.map(Json).map_err(Failure::of)
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

enum Failure {
    /// The layer replaces it by the right answer, such as that of the first request.
    Refused(Refused),
    /// The database failed. The payment may have been taken, so the client sends the same key again.
    Database(Box<dyn Error + Send + Sync>),
}

impl Failure {
    fn of(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Database(Box::new(error))
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<lock_core::Error> for Failure {
    fn from(error: lock_core::Error) -> Self {
        Self::of(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(refused) => refused.into_response(),
            Self::Database(error) => {
                eprintln!("payments: {error}");
                let again = "send the same request again\n";
                (StatusCode::SERVICE_UNAVAILABLE, again).into_response()
            }
        }
    }
}
