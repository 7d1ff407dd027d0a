//! Serves plain hyper behind the lock layer.
//!
//! Run it with `cargo run --example plain_hyper`. With `REDIS_URL=redis://127.0.0.1:6379` in the environment, the locks live
//! in Redis. Click twice: `curl -i -X POST -H 'x-user-id: ada' http://127.0.0.1:3004/orders`.

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Response};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use lock_core::LockManager;
use lock_tower::{LockContext, LockLayer};
use tokio::net::TcpListener;
use tower::ServiceBuilder;

/// The time that orders under way have when the process is asked to stop.
const LAST_ORDERS: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(&url).await?;
    let listener = TcpListener::bind("127.0.0.1:3004").await?;
    println!("POST http://{}/orders", listener.local_addr()?);
    let one_order = one_order(locks.clone())?;
    let under_way = one_order.in_flight();
    let stopped = async {
        let _signal = tokio::signal::ctrl_c().await;
    };
    serve(listener, one_order, Duration::from_millis(800), stopped).await;
    // The server has answered its clients. The orders of clients that have gone end here.
    under_way.drain(LAST_ORDERS).await;
    locks.drain(LAST_ORDERS).await;
    Ok(())
}

/// Builds the layer. Plain hyper has no routes, so the key contains the path.
fn one_order(locks: LockManager) -> Result<LockLayer, Box<dyn Error>> {
    let layer = LockLayer::template(locks, "submit:<header.x-user-id>:<method>:<path>")?
        .cooldown(Duration::from_secs(2))
        .checked()?;
    Ok(layer)
}

/// Serves until `stopped` ends, and then answers the requests that are under way.
async fn serve(
    listener: TcpListener,
    one_order: LockLayer,
    time_of_the_bank: Duration,
    stopped: impl Future<Output = ()>,
) {
    let order = move |request| order(request, time_of_the_bank);
    // One service for all connections: it is cloned, and the clones share the layer's counters.
    let service = ServiceBuilder::new().layer(one_order).service_fn(order);
    let service = TowerToHyperService::new(service);
    let connections = GracefulShutdown::new();
    let mut stopped = std::pin::pin!(stopped);
    loop {
        let socket = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => TokioIo::new(socket),
                Err(error) => {
                    eprintln!("no connection: {error}");
                    continue;
                }
            },
            () = &mut stopped => break,
        };
        let connection = http1::Builder::new().serve_connection(socket, service.clone());
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                eprintln!("a connection failed: {error}");
            }
        });
    }
    connections.shutdown().await;
}

async fn order<B>(
    request: Request<B>,
    bank: Duration,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let lock = request.extensions().get::<LockContext>();
    let fence = lock.and_then(LockContext::fencing_token);
    // Methods that change nothing, such as GET, pass the layer without a lock.
    let Some(fence) = fence else {
        return Ok(Response::new(Full::from("POST an order\n")));
    };
    tokio::time::sleep(bank).await;
    let text = format!("an order under fencing token {fence}\n");
    Ok(Response::new(Full::from(text)))
}
