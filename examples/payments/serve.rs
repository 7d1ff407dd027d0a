//! A server that ends in order.

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use lock_core::LockManager;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::http;
use crate::store::Store;

/// The time that payments under way have when the process is asked to stop.
const LAST_PAYMENTS: Duration = Duration::from_secs(10);

/// Serves on `PORT` until the process is asked to stop.
pub(crate) async fn serve<S: Store>(locks: LockManager, store: S) -> Result<(), Box<dyn Error>> {
    let (router, under_way) = http::router(&locks, store)?;
    let port = std::env::var("PORT").map_or(Ok(3001), |port| port.parse())?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    // The handler of the signal is installed before the opening line, so that no later signal is missed.
    let mut terminated = signal(SignalKind::terminate())?;
    writeln!(std::io::stdout(), "payments: http://{address}/payments")?;

    let server = axum::serve(listener, router);
    let stopped = async move {
        let _signal = terminated.recv().await;
    };
    server.with_graceful_shutdown(stopped).await?;
    // The server has answered its clients. The payments of clients that have gone end here.
    for payments in under_way {
        payments.drain(LAST_PAYMENTS).await;
    }
    locks.drain(LAST_PAYMENTS).await;
    Ok(())
}
