//! Serves the data of the page: stock, orders and locks.
//!
//! A further route resets them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;

use crate::app::Shop;
use crate::catalogue::SKUS;
use crate::db::{Lane, Night, Order, Shelf};
use crate::error::ShopError;

const ORDERS_SHOWN: u32 = 1_000;
const NIGHTS_SHOWN: u32 = 10;

/// A lock that this process holds now. The key is data of the demo; a real service would not
/// show it to every user.
#[derive(Debug, Serialize)]
pub(crate) struct Held {
    key: String,
    remaining_ms: u128,
    held_ms: u128,
    fencing_token: i64,
}

/// Serves `GET /stock`.
pub(crate) async fn stock(State(shop): State<Shop>) -> Result<Json<Vec<Shelf>>, ShopError> {
    Ok(Json(shop.db.shelves().await?))
}

/// Serves `GET /orders`, newest first.
pub(crate) async fn orders(State(shop): State<Shop>) -> Result<Json<Vec<Order>>, ShopError> {
    Ok(Json(shop.db.orders(ORDERS_SHOWN).await?))
}

/// Serves `GET /nights`: the reports of the last days, newest first.
pub(crate) async fn nights(State(shop): State<Shop>) -> Result<Json<Vec<Night>>, ShopError> {
    Ok(Json(shop.db.nights(NIGHTS_SHOWN).await?))
}

/// Serves `GET /locks` without a round trip to the store.
pub(crate) async fn locks(State(shop): State<Shop>) -> Json<Vec<Held>> {
    let held = shop.locks.held();
    Json(
        held.iter()
            .map(|lock| Held {
                key: lock.key().to_owned(),
                remaining_ms: lock.remaining().as_millis(),
                held_ms: lock.held_for().as_millis(),
                fencing_token: lock.fencing_token().into(),
            })
            .collect(),
    )
}

/// Serves `GET /readyz`: 503 as long as this process cannot take locks.
pub(crate) async fn ready(State(shop): State<Shop>) -> Result<(), lock_core::Error> {
    shop.locks.ping().await
}

/// Serves `POST /reset`: full shelves, no orders.
pub(crate) async fn reset(State(shop): State<Shop>) -> Result<StatusCode, ShopError> {
    for sku in SKUS {
        shop.restock(sku).await?;
        shop.db.restock(Lane::Plain, sku, None).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn no_such_page() -> ShopError {
    ShopError::NoSuchPage
}
