//! tonic behind the lock layer: a call that is repeated while the first one runs is `ABORTED`.
//!
//! `cargo run --example grpc`. The service is written by hand, with text for messages, so that the
//! example needs no protoc; with generated code nothing here changes but `Orders`.
//! `REDIS_URL=redis://127.0.0.1:6379` before it puts the locks into Redis.

mod orders;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::http::Response;
use lock_core::LockManager;
use lock_tower::{LockLayer, Rejection, RejectionKind};
use tonic::transport::Server;
use tonic::{Code, Status};

use crate::orders::Orders;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(&url).await?;
    let address = SocketAddr::from(([127, 0, 0, 1], 3002));
    println!("gRPC on {address}: /shop.Orders/Create");
    let one_order = one_order(locks)?;
    let orders = Orders::new(Duration::from_millis(800));
    Ok(Server::builder()
        .layer(one_order)
        .add_service(orders)
        .serve(address)
        .await?)
}

/// All calls are POSTs, and the path is the method's name: one call at a time of each method for
/// each caller. A client that wants to be able to repeat a call names it: `<header.order-id>`.
fn one_order(locks: LockManager) -> Result<LockLayer, Box<dyn Error>> {
    let layer = LockLayer::template(locks, "grpc:<header.x-user-id>:<path>")?
        .cooldown(Duration::from_secs(2))
        .on_reject(|rejection, _| status(rejection));
    Ok(layer.checked()?)
}

/// Without this, clients see the HTTP status: `UNKNOWN` for a 409.
fn status(rejection: &Rejection) -> Response<String> {
    let code = match rejection.kind() {
        // "The client should retry at a higher level": not this call by itself.
        RejectionKind::InFlight | RejectionKind::CoolingDown => Code::Aborted,
        RejectionKind::Unavailable => Code::Unavailable,
        RejectionKind::KeyMissing => Code::Unauthenticated,
        _ => Code::Internal,
    };
    Status::new(code, rejection.code()).into_http()
}
