//! Serves the left lane: the same two steps without any lock.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;

use crate::app::Shop;
use crate::auth::User;
use crate::checkout::{self, Fence, OrderRequest, Payment};
use crate::db::{Lane, Order};
use crate::error::ShopError;

/// Serves `POST /plain/orders`.
pub(crate) async fn create(
    State(shop): State<Shop>,
    Extension(User(uid)): Extension<User>,
    payment: Result<Query<Payment>, QueryRejection>,
    request: Result<Json<OrderRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<Order>), ShopError> {
    let (Query(payment), Json(request)) = (payment?, request?);
    let order = shop.place_order_plain(&uid, request, payment).await?;
    Ok((StatusCode::CREATED, Json(order)))
}

#[rustfmt::skip]
impl Shop {
    // page: begin plain
    async fn place_order_plain(&self, uid: &str, request: OrderRequest, payment: Payment) -> Result<Order, ShopError> {
        let basket = checkout::authorise(&self.db, Lane::Plain, uid, request, payment).await?;
        checkout::read_pay_write(&self.db, &basket, Fence::AsRead).await
    }
    // page: end plain
}
