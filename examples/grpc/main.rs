//! Serves tonic behind the lock layer.
//!
//! A call that is repeated while the first one runs is `ABORTED`.
//!
//! Run it with `cargo run --example grpc --features grpc`. With `REDIS_URL=redis://127.0.0.1:6379` in the
//! environment, the locks live in Redis. The service is written by hand with text messages, so
//! that the example needs no protoc. With generated code only `Orders` would change.

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

/// Builds a layer that admits one call at a time for each method and caller.
///
/// All gRPC calls are POSTs, and the path is the name of the method. A client that repeats calls
/// on purpose can name each call in a header, for example `<header.order-id>`.
fn one_order(locks: LockManager) -> Result<LockLayer, Box<dyn Error>> {
    let layer = LockLayer::template(locks, "grpc:<header.x-user-id>:<path>")?
        .cooldown(Duration::from_secs(2))
        .on_reject(|rejection, _| status(rejection));
    Ok(layer.checked()?)
}

/// Answers a refusal with a gRPC status. Without it, clients see the HTTP status: `UNKNOWN` for a
/// 409.
fn status(rejection: &Rejection) -> Response<String> {
    let code = match rejection.kind() {
        // gRPC defines `ABORTED` for this case: the client should retry at a higher level, and not
        // repeat this call.
        RejectionKind::InFlight | RejectionKind::CoolingDown => Code::Aborted,
        RejectionKind::Unavailable => Code::Unavailable,
        RejectionKind::KeyMissing => Code::Unauthenticated,
        _ => Code::Internal,
    };
    Status::new(code, rejection.code()).into_http()
}
