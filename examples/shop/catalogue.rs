//! Shares the catalogue among readers, and lets one writer change it alone.
//!
//! Both sides take one product after the other, so no transaction covers them. Without the lock, a reader beside a writer
//! would show old prices next to new ones.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use lock_core::distributed_lock;

use crate::app::Shop;
use crate::db::Lane;
use crate::error::ShopError;

/// The products, in the order of the catalogue.
pub(crate) const SKUS: [&str; 2] = ["mug", "lamp"];

/// The time for one product: a reader loads its picture, a writer prints its label.
const STEP: Duration = Duration::from_millis(100);

/// A price in cents for each sku.
type Prices = BTreeMap<String, i64>;

/// Serves `GET /catalogue`.
pub(crate) async fn read(State(shop): State<Shop>) -> Result<Json<Prices>, ShopError> {
    Ok(Json(shop.read_catalogue().await?))
}

/// Serves `PUT /catalogue` with new prices: all of them, or none if one is not valid.
pub(crate) async fn write(
    State(shop): State<Shop>,
    request: Result<Json<Prices>, JsonRejection>,
) -> Result<StatusCode, ShopError> {
    let Json(prices) = request?;
    if !prices.values().all(|cents| (1..=1_000_000).contains(cents)) {
        return Err(ShopError::Price);
    }
    if !prices.keys().all(|sku| SKUS.contains(&&**sku)) {
        return Err(ShopError::UnknownSku);
    }
    shop.write_catalogue(prices).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[rustfmt::skip]
impl Shop {
    // page: begin catalogue
    #[distributed_lock(key = "catalogue", ttl = "2s", wait = "5s", mode = read, manager = self.locks)]
    async fn read_catalogue(&self) -> Result<Prices, ShopError> {
        let mut prices = Prices::new();
        for sku in SKUS {
            let product = self.db.product(Lane::Locked, sku).await?.ok_or(ShopError::UnknownSku)?;
            prices.insert(product.sku, product.cents);
            tokio::time::sleep(STEP).await; // other readers read meanwhile
        }
        Ok(prices)
    }

    #[distributed_lock(key = "catalogue", ttl = "2s", wait = "5s", manager = self.locks, guard = lock)]
    async fn write_catalogue(&self, prices: Prices) -> Result<(), ShopError> {
        for (sku, cents) in prices {
            self.db.set_price(sku, cents, lock.fencing_token().into()).await?;
            tokio::time::sleep(STEP).await; // this writer is alone
        }
        Ok(())
    }
    // page: end catalogue
}
