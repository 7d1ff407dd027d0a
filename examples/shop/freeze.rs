//! Shows an owner that stops between its read and its write.
//!
//! The owner then writes as if it had not stopped.
//!
//! A process stops like that in a long garbage collection, in a paged-out container or while a
//! laptop sleeps.
//!
//! No lock can prevent the process from sending that write. The fencing token lets the database
//! refuse it.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use lock_core::{Renew, lock_key};
use serde_json::json;

use crate::app::Shop;
use crate::checkout::{self, Basket, Fence};
use crate::db::{DbError, Lane};
use crate::error::{PROBLEMS, ShopError};

/// A product of its own.
///
/// So the freeze does not change the figures of the two lanes.
const SKU: &str = "lamp";
const TTL: Duration = Duration::from_millis(1500);

/// Serves `POST /freeze` with the answer that the frozen owner gets for its late write.
pub(crate) async fn freeze(State(shop): State<Shop>) -> Result<Response, ShopError> {
    let sku = SKU;
    shop.restock(sku).await?;
    // The lock is not renewed, because a frozen process would not renew it either.
    let frozen = shop
        .locks
        .lock(lock_key!("sku:<sku>"))
        .ttl(TTL)
        .renew(Renew::Off)
        .wait(TTL * 3)
        .acquire()
        .await?;
    let token: i64 = frozen.fencing_token().into();
    let cents = shop
        .db
        .product(Lane::Locked, sku)
        .await?
        .ok_or(ShopError::UnknownSku)?
        .cents;
    let was_valid = frozen.is_valid();

    // The next customer waits for the lock, gets it at the end of its ttl, and sells one lamp.
    let next = tokio::spawn({
        let shop = shop.clone();
        async move {
            shop.deduct(&basket("the-next-customer", cents, Duration::ZERO))
                .await
        }
    });
    // Meanwhile the frozen owner is between its read and its write for twice its ttl.
    let late = checkout::read_pay_write(
        &shop.db,
        &basket("the-frozen-customer", cents, TTL * 2),
        Fence::Token(token),
    )
    .await;
    let sold_meanwhile = next.await.map_err(|_| DbError::Closed)??;

    let error = match late {
        Err(ShopError::Database(error @ DbError::StaleFence { .. })) => error,
        Err(other) => return Err(other),
        // The fence in the SQL makes this impossible. If it ever happens, it must not look like a
        // success.
        Ok(order) => return Ok((StatusCode::INTERNAL_SERVER_ERROR, Json(order)).into_response()),
    };
    let body = json!({
        "type": format!("{PROBLEMS}stale_fencing_token"),
        "title": "stale fencing token",
        "status": 409,
        "code": "stale_fencing_token",
        "detail": format!("{error}; nothing was written"),
        "ttl_ms": TTL.as_millis(),
        "frozen_ms": (TTL * 2).as_millis(),
        "fencing_token": token,
        "lock_was_valid_before": was_valid,
        "lock_is_valid_now": frozen.is_valid(),
        "sold_meanwhile": sold_meanwhile,
    });
    Ok((
        StatusCode::CONFLICT,
        [(header::CONTENT_TYPE, "application/problem+json")],
        Json(body),
    )
        .into_response())
}

fn basket(user: &str, cents: i64, capture: Duration) -> Basket {
    Basket {
        lane: Lane::Locked,
        sku: SKU.to_owned(),
        user: user.to_owned(),
        quantity: 1,
        cents,
        capture,
    }
}
