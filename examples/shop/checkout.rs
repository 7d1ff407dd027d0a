//! Processes an order, for both lanes.
//!
//! No code in this file knows of locks. The lanes differ in two points only: how many callers
//! may be inside these two functions at a time, and the fence that they pass.

use std::time::Duration;

use serde::Deserialize;

use crate::db::{Db, Lane, Order, Sale};
use crate::error::ShopError;

/// The time that the customer's bank takes.
pub(crate) const AUTHORISE: Duration = Duration::from_millis(800);

/// The time that the payment provider takes to book authorised money.
const CAPTURE: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderRequest {
    pub(crate) sku: String,
    pub(crate) quantity: i64,
}

/// The query of an order: `?pay=fast` switches off the bank's delay.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Payment {
    #[serde(default)]
    pay: Bank,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Bank {
    #[default]
    Slow,
    Fast,
}

/// An order that the bank has authorised and that is not sold yet.
#[derive(Clone, Debug)]
pub(crate) struct Basket {
    pub(crate) lane: Lane,
    pub(crate) sku: String,
    pub(crate) user: String,
    pub(crate) quantity: i64,
    pub(crate) cents: i64,
    /// The time from the read to the write. The freeze makes it long.
    pub(crate) capture: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fence {
    /// No lock: the writer can only pass the fence that it has read.
    AsRead,
    /// The fencing token of the lock under which the write runs.
    Token(i64),
}

/// Looks up the product and asks the bank. This step is slow and sells nothing yet.
pub(crate) async fn authorise(
    db: &Db,
    lane: Lane,
    user: &str,
    request: OrderRequest,
    payment: Payment,
) -> Result<Basket, ShopError> {
    if !(1..=100).contains(&request.quantity) {
        return Err(ShopError::Quantity);
    }
    let product = db
        .product(lane, &request.sku)
        .await?
        .ok_or(ShopError::UnknownSku)?;
    if product.stock < request.quantity {
        return Err(ShopError::SoldOut {
            left: product.stock,
        });
    }
    if payment.pay == Bank::Slow {
        tokio::time::sleep(AUTHORISE).await;
    }
    Ok(Basket {
        lane,
        sku: product.sku,
        user: user.to_owned(),
        quantity: request.quantity,
        cents: product.cents * request.quantity,
        capture: CAPTURE,
    })
}

// page: begin body
/// Reads, pays and writes. Both lanes run exactly this code, and the same SQL behind it.
pub(crate) async fn read_pay_write(
    db: &Db,
    basket: &Basket,
    fence: Fence,
) -> Result<Order, ShopError> {
    let seen = db
        .product(basket.lane, &basket.sku)
        .await?
        .ok_or(ShopError::UnknownSku)?;
    let stock_left = seen.stock - basket.quantity;
    if stock_left < 0 {
        return Err(ShopError::SoldOut { left: seen.stock });
    }
    tokio::time::sleep(basket.capture).await; // the payment provider books the money
    let fence = match fence {
        Fence::AsRead => seen.fence,
        Fence::Token(token) => token,
    };
    // UPDATE products SET stock = ?, fence = ? WHERE sku = ? AND fence <= ?
    db.sell(basket.sale(stock_left, fence))
        .await
        .map_err(ShopError::from)
}
// page: end body

impl Basket {
    fn sale(&self, stock_left: i64, fence: i64) -> Sale {
        Sale {
            lane: self.lane,
            sku: self.sku.clone(),
            user: self.user.clone(),
            quantity: self.quantity,
            cents: self.cents,
            stock_left,
            fence,
        }
    }
}
