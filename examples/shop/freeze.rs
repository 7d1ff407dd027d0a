//! A holder that stops between its read and its write, as a process does in a long garbage
//! collection, a paged-out container or a laptop's sleep, and then writes as if nothing had been.
//!
//! No lock can prevent that write from being sent. The fencing token lets the database refuse it.

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

/// A shelf of its own, so that the figures of the two lanes stay what the clicks made them.
const SKU: &str = "lamp";
const TTL: Duration = Duration::from_millis(1500);

/// `POST /freeze`: the answer is what the frozen holder gets for its late write.
pub(crate) async fn freeze(State(shop): State<Shop>) -> Result<Response, ShopError> {
    let sku = SKU;
    shop.restock(sku).await?;
    // Not renewed: a frozen process would not renew either.
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

    // The next customer waits for the lock, gets it when it has run out, and sells one lamp.
    let next = tokio::spawn({
        let shop = shop.clone();
        async move {
            shop.deduct(&basket("the-next-customer", cents, Duration::ZERO))
                .await
        }
    });
    // Meanwhile the frozen one is between its read and its write for twice its ttl.
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
        // Cannot be while the fence is in the SQL; if it ever is, it must not look like a success.
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
