//! Serves the right lane: the same two steps, each under the lock that it needs.
//!
//! Three measures prevent a second order, and each closes another gap.
//!
//! * The layer refuses the second click before the handler runs.
//! * `order:<uid>` also covers callers that do not come through this route.
//! * `sku:<..>` keeps different customers from selling one mug twice. A lock per customer cannot
//!   do that.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use lock_core::distributed_lock;

use crate::app::Shop;
use crate::auth::User;
use crate::checkout::{self, Basket, Fence, OrderRequest, Payment};
use crate::db::{Lane, Order};
use crate::error::ShopError;

/// Serves `POST /orders`.
pub(crate) async fn create(
    State(shop): State<Shop>,
    Extension(User(uid)): Extension<User>,
    payment: Result<Query<Payment>, QueryRejection>,
    request: Result<Json<OrderRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<Order>), ShopError> {
    let (Query(payment), Json(request)) = (payment?, request?);
    let order = shop.place_order(&uid, request, payment).await?;
    Ok((StatusCode::CREATED, Json(order)))
}

#[rustfmt::skip]
impl Shop {
    // page: begin attribute
    #[distributed_lock(key = "order:<uid>", ttl = "10s", manager = self.locks)]
    async fn place_order(&self, uid: &str, request: OrderRequest, payment: Payment) -> Result<Order, ShopError> {
        let basket = checkout::authorise(&self.db, Lane::Locked, uid, request, payment).await?;
        self.deduct(&basket).await
    }

    #[distributed_lock(key = "sku:<basket.sku>", ttl = "2s", wait = "5s", manager = self.locks, guard = lock)]
    pub(crate) async fn deduct(&self, basket: &Basket) -> Result<Order, ShopError> {
        checkout::read_pay_write(&self.db, basket, Fence::Token(lock.fencing_token().into())).await
    }
    // page: end attribute

    /// Fills a shelf again under its lock.
    ///
    /// Every write to a shelf needs the lock, because an order between its read and its write
    /// would put the old stock back.
    #[distributed_lock(key = "sku:<sku>", ttl = "2s", wait = "5s", manager = self.locks, guard = lock)]
    pub(crate) async fn restock(&self, sku: &str) -> Result<(), ShopError> {
        self.db.restock(Lane::Locked, sku, Some(lock.fencing_token().into())).await.map_err(ShopError::from)
    }
}
