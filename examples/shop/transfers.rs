//! Moves money between two gift cards, under one lock of both.
//!
//! Two locks, one after the other, would deadlock when two customers send each other money at the same moment. A lock of
//! both keys acquires them in the order of their bytes, and not in the order of the arguments.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use lock_core::distributed_lock;
use serde::Deserialize;

use crate::app::Shop;
use crate::db::{Card, Movement};
use crate::error::ShopError;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transfer {
    from: String,
    to: String,
    cents: i64,
}

/// Serves `POST /transfers` with both cards.
pub(crate) async fn create(
    State(shop): State<Shop>,
    request: Result<Json<Transfer>, JsonRejection>,
) -> Result<Json<[Card; 2]>, ShopError> {
    let Json(transfer) = request?;
    if transfer.cents <= 0 || transfer.from == transfer.to {
        return Err(ShopError::Transfer);
    }
    Ok(Json(shop.transfer(&transfer).await?))
}

/// Serves `GET /cards`.
pub(crate) async fn cards(State(shop): State<Shop>) -> Result<Json<Vec<Card>>, ShopError> {
    Ok(Json(shop.db.cards().await?))
}

#[rustfmt::skip]
impl Shop {
    // page: begin transfer
    #[distributed_lock(keys = ["card:<transfer.from>", "card:<transfer.to>"], ttl = "2s", wait = "5s", manager = self.locks, guard = lock)]
    async fn transfer(&self, transfer: &Transfer) -> Result<[Card; 2], ShopError> {
        let from = self.db.card(&transfer.from).await?.ok_or(ShopError::UnknownCard)?;
        let to = self.db.card(&transfer.to).await?.ok_or(ShopError::UnknownCard)?;
        if from.cents < transfer.cents {
            return Err(ShopError::NotCovered { left: from.cents });
        }
        // Both cards were read under the lock, and each row checks the token that counts for both.
        let movement = Movement { from, to, cents: transfer.cents, fence: lock.fencing_token().into() };
        Ok(self.db.transfer(movement).await?)
    }
    // page: end transfer
}
