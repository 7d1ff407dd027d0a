//! Exports the orders, at most five times at once for each tenant.
//!
//! An export is heavy, so one tenant must not keep all of the shop's workers busy. The layer in `app` gives each request a
//! permit for as long as this handler runs, in whichever process that is.

use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use crate::app::Shop;
use crate::error::ShopError;

/// The time that an export takes, because a real one reads more rows than this shop has.
const EXPORT: Duration = Duration::from_millis(1500);

const ORDERS_EXPORTED: u32 = 10_000;

/// An export. Its times, in ms of Unix time, show which exports ran beside it.
#[derive(Debug, Serialize)]
pub(crate) struct Export {
    orders: usize,
    began: i64,
    ended: i64,
}

/// Serves `POST /exports`.
#[allow(
    clippy::disallowed_methods,
    reason = "the times are compared across processes, and no lock depends on them"
)]
pub(crate) async fn create(State(shop): State<Shop>) -> Result<Json<Export>, ShopError> {
    let began = millis(SystemTime::now());
    let orders = shop.db.orders(ORDERS_EXPORTED).await?.len();
    tokio::time::sleep(EXPORT).await;
    let ended = millis(SystemTime::now());
    Ok(Json(Export {
        orders,
        began,
        ended,
    }))
}

/// Returns Unix time in milliseconds.
fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}
