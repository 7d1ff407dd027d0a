//! A payment API whose clients may repeat any request.
//!
//! The client makes one `Idempotency-Key` per payment. The lock layer lets one request per key run at a time, and
//! remembers its answer. A later request with the same key gets that answer, with `Idempotency-Replayed: true`.
//!
//! A process that is killed between the effect and the record of the answer leaves no record, so the next request
//! runs again. The unique column closes this gap: `operation_id` is the same in every run for one key.
//! `POST /unguarded/payments` runs the same code without that column, to show what the column prevents.
//!
//! Run it with `cargo run --example payments`. `PORT`, `REDIS_URL` and `PAYMENTS_DB` (a SQLite file) are optional.

mod db;
mod http;
#[path = "../wal.rs"]
mod wal;

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use lock_core::LockManager;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// The time that payments under way have when the process is asked to stop.
const LAST_PAYMENTS: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(&url).await?;
    let db = db::Db::open(std::env::var_os("PAYMENTS_DB").map(Into::into))?;
    let (router, under_way) = http::router(&locks, db)?;

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
    under_way.drain(LAST_PAYMENTS).await;
    locks.drain(LAST_PAYMENTS).await;
    Ok(())
}
