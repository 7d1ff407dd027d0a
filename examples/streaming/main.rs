//! Streams an answer while it is made, one at a time for each user.
//!
//! The server speaks HTTP/1 and HTTP/2 without TLS.
//!
//! Start the server with `cargo run --example streaming`. With `REDIS_URL=redis://127.0.0.1:6379` in
//! its environment, the locks live in Redis. Ask in two other terminals with `curl -N -X POST -H
//! 'x-user-id: ada' http://127.0.0.1:3001/reports`; `--http2-prior-knowledge` selects HTTP/2.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::post;
use http_body_util::channel::{Channel, Sender};
use lock_core::LockManager;
use lock_tower::{LockContext, LockLayer, ReleaseAt};
use tokio::net::TcpListener;

const PAGES: u32 = 10;

type Pages = Sender<Bytes, &'static str>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(&url).await?;
    let listener = TcpListener::bind("127.0.0.1:3001").await?;
    println!("POST http://{}/reports", listener.local_addr()?);
    Ok(axum::serve(listener, app(locks, Duration::from_millis(500))?).await?)
}

/// Builds the router. The lock is held until the last page is sent or the client leaves.
fn app(locks: LockManager, time_for_a_page: Duration) -> Result<Router, Box<dyn Error>> {
    let one_report = LockLayer::template(locks, "report:<header.x-user-id>")?
        .cooldown(Duration::from_secs(2))
        .release_at(ReleaseAt::BodyEnd)
        .name("reports")
        .checked()?;
    let report = move |lock| async move { report(lock, time_for_a_page) };
    Ok(Router::new()
        .route("/reports", post(report))
        .route_layer(one_report))
}

fn report(lock: LockContext, time_for_a_page: Duration) -> Body {
    let (pages, body) = Channel::new(1);
    tokio::spawn(write(pages, lock, time_for_a_page));
    Body::new(body)
}

/// Writes the pages and ends early when the client has gone.
async fn write(mut pages: Pages, lock: LockContext, time_for_a_page: Duration) {
    // In shadow mode there may be no lock, and the report is still written.
    let fence = lock
        .fencing_token()
        .map_or("(none)".to_owned(), |fence| fence.to_string());
    for page in 1..=PAGES {
        // The layer does not stop a handler that has lost its lock, so the handler checks.
        if lock.is_lost() {
            return pages.abort("another request writes this report now");
        }
        let page = Bytes::from(format!("page {page} under fencing token {fence}\n"));
        if pages.send_data(page).await.is_err() {
            return;
        }
        tokio::time::sleep(time_for_a_page).await;
    }
}
