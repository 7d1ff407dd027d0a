//! Charges a customer, to show what is left when the process is killed before it has answered.
//!
//! The two ways differ in the transaction: one handler commits its charge, and the layer of the other one commits the
//! charge together with its answer. The table has no unique column, so nothing else prevents a second charge.

use std::num::NonZeroU32;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use lock_core::once::Tx;
use lock_tower::Once;
use serde::Deserialize;

use crate::app::Shop;
use crate::auth::User;
use crate::db::Charge;
use crate::error::ShopError;
use crate::kill::Kill;
use crate::sqlite::Sqlite;

const CHARGES_SHOWN: u32 = 100;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Amount {
    cents: NonZeroU32,
}

type Body = Result<Json<Amount>, JsonRejection>;
type Charged = (StatusCode, Json<Charge>);

// page: begin charges
/// The charge is committed here. Later, the release of the lock writes the answer to Redis.
pub(crate) async fn answer_in_redis(
    State(shop): State<Shop>,
    Extension(User(user)): Extension<User>,
    kill: Kill,
    body: Body,
) -> Result<Charged, ShopError> {
    let Json(Amount { cents }) = body?;
    let mut tx = Tx::begin(&shop.once).await?;
    let charge = Charge::take(&mut tx, &user, cents)?;
    tx.commit().await?;
    kill.here().await; // the button has the process killed here
    Ok((StatusCode::CREATED, Json(charge)))
}

/// The layer commits the charge and the answer together, when this function has returned.
pub(crate) async fn answer_in_commit(
    once: Once<Sqlite>,
    Extension(User(user)): Extension<User>,
    kill: Kill,
    body: Body,
) -> Result<Charged, ShopError> {
    let Json(Amount { cents }) = body?;
    let mut tx = once.begin().await?;
    let charge = Charge::take(&mut tx, &user, cents)?;
    kill.here().await; // the button has the process killed here
    Ok((StatusCode::CREATED, Json(charge)))
}
// page: end charges

/// Serves `GET /charges`, newest first.
pub(crate) async fn list(State(shop): State<Shop>) -> Result<Json<Vec<Charge>>, ShopError> {
    Ok(Json(shop.db.charges(CHARGES_SHOWN).await?))
}
