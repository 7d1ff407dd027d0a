//! Locks the handlers of actix-web by the library's verbs, without a layer.
//!
//! Run it with `cargo run --example actix --features actix`. With `REDIS_URL=redis://127.0.0.1:6379` in the environment,
//! the locks live in Redis. Send a payout twice in quick succession: `curl -i -X POST http://127.0.0.1:3003/payouts/7`.

mod refused;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::sync::Mutex;
use std::time::Duration;

use actix_web::error::ErrorInternalServerError;
use actix_web::web::{self, Data, Path, ServiceConfig};
use actix_web::{App, HttpResponse, HttpServer};
use lock_core::{FencingToken, LockGuard, LockManager, lock_key};
use tokio::runtime::Handle;

use crate::refused::Refused;

/// The time that work under way has when the process is asked to stop.
const LAST_WORK: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(&url).await?;
    let bank = Data::new(Bank::new(Duration::from_millis(800)));
    let app_locks = locks.clone();
    let server = HttpServer::new(move || {
        let locks = app_locks.clone();
        App::new().app_data(bank.clone()).configure(routes(locks))
    })
    .bind(("127.0.0.1", 3003))?;
    println!("POST http://127.0.0.1:3003/payouts/7 or /reports/7");
    // actix-web itself handles Ctrl-C and SIGTERM, and answers its clients before it stops.
    server.run().await?;
    // Payouts whose clients have gone, and reports, end here.
    locks.drain(LAST_WORK).await;
    Ok(())
}

/// The bank pays, and takes some time for it.
struct Bank {
    takes: Duration,
    paid: Mutex<Vec<FencingToken>>,
    /// The runtime of `main`. A worker of actix-web ends with all of its own tasks when the server stops, and this
    /// runtime waits for its tasks.
    runtime: Handle,
}

impl Bank {
    fn new(takes: Duration) -> Self {
        let (paid, runtime) = (Mutex::default(), Handle::current());
        Self {
            takes,
            paid,
            runtime,
        }
    }

    async fn pay(&self, fence: FencingToken) -> usize {
        tokio::time::sleep(self.takes).await;
        let mut paid = self.paid.lock().expect("no panic under the mutex");
        paid.push(fence);
        paid.len()
    }
}

fn routes(locks: LockManager) -> impl FnOnce(&mut ServiceConfig) {
    |config| {
        config
            .app_data(Data::new(locks))
            .route("/payouts/{account}", web::post().to(pay_out))
            .route("/reports/{account}", web::post().to(start_report));
    }
}

/// Pays once for each account at a time. A second click is answered with 409, during the payout and for 2 s after it.
async fn pay_out(
    account: Path<u64>,
    locks: Data<LockManager>,
    bank: Data<Bank>,
) -> actix_web::Result<HttpResponse> {
    let request = locks
        .lock(lock_key!("payout:<account>"))
        .ttl(Duration::from_secs(10))
        .cooldown(Duration::from_secs(2));
    let runtime = bank.runtime.clone();
    let payout = request.run_with(move |lock| async move { bank.pay(lock.fencing_token()).await });
    // A task of its own, because actix-web may drop the handler of a client that has gone, and a payout that has begun
    // shall end. A handler that may be dropped awaits `payout` itself; then the lock is released with it.
    let payout = runtime.spawn(payout).await;
    let number = payout.map_err(ErrorInternalServerError)?.map_err(Refused)?;
    Ok(HttpResponse::Created().body(format!("payout {number}")))
}

/// Starts a report, which goes on after the answer. The guard moves into the task that writes it.
async fn start_report(
    account: Path<u64>,
    locks: Data<LockManager>,
    bank: Data<Bank>,
) -> actix_web::Result<HttpResponse> {
    let guard = locks.lock(lock_key!("report:<account>")).try_acquire();
    let Some(guard) = guard.await.map_err(Refused)? else {
        return Ok(HttpResponse::Ok().body("the report is already being written"));
    };
    let pages = bank.takes * 10;
    bank.runtime.spawn(write_report(guard, pages));
    Ok(HttpResponse::Accepted().body("the report is being written"))
}

/// Writes the report until it is done or the lock is lost.
async fn write_report(guard: LockGuard, pages: Duration) {
    tokio::select! {
        () = tokio::time::sleep(pages) => {}
        // Another process may write the report now.
        () = guard.lost() => return,
    }
    if let Err(error) = guard.release().await {
        eprintln!("the release of a report failed: {error}");
    }
}
