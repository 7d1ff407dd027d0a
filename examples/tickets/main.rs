//! A request that answers 202, and a worker that finishes its job under the same lock.
//!
//! `POST /reports/7` takes the lock of the report, leaves a job for the worker, and answers 202. The job contains a
//! ticket, with which the worker goes on with the lock. From the request to the end of the job, a second order of the
//! same report is refused with 409, and the fencing token is one and the same.
//!
//! In two terminals, with `REDIS_URL=redis://127.0.0.1:6379` in front of both commands:
//!
//! ```sh
//! cargo run --example tickets             # the web process; PORT is optional
//! cargo run --example tickets -- worker   # the worker; start as many as you like
//! curl -i -X POST http://127.0.0.1:3002/reports/7
//! ```
//!
//! Without `REDIS_URL` the worker is a task of the web process.

mod jobs;
#[cfg(test)]
mod tests;
mod web;
mod worker;

use std::error::Error;
use std::io::Write;

use lock_core::LockManager;
use tokio::net::TcpListener;

use crate::jobs::Jobs;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(&url).await?;
    let jobs = Jobs::connect(&url).await?;
    if std::env::args().nth(1).as_deref() == Some("worker") {
        writeln!(std::io::stdout(), "worker: waits for jobs")?;
        return worker::run(locks, jobs).await;
    }
    if jobs.are_here() {
        tokio::spawn({
            let (locks, jobs) = (locks.clone(), jobs.clone());
            async move {
                if let Err(error) = worker::run(locks, jobs).await {
                    eprintln!("the worker has ended: {error}");
                }
            }
        });
    }
    let port = std::env::var("PORT").map_or(Ok(3002), |port| port.parse())?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stdout(), "web: http://{address}/reports/7")?;
    Ok(axum::serve(listener, web::router(locks, jobs)?).await?)
}
