//! A payment API whose clients may repeat any request.
//!
//! The client makes one `Idempotency-Key` per payment. The lock layer lets one request per key run at a time, and
//! remembers its answer. A later request with the same key gets that answer, with `Idempotency-Replayed: true`.
//!
//! A process can be killed at any time. Three routes show what becomes of a payment then:
//!
//! | route | the answer is recorded | after a kill between payment and record |
//! | --- | --- | --- |
//! | `POST /once/payments` | in the commit of the payment | there is no such time |
//! | `POST /payments` | behind it, by the release of the lock | the next run finds the payment, because `operation` is a unique column |
//! | `POST /unguarded/payments` | the same | the next run **takes it again**, because the column is not unique |
//!
//! # Try it
//!
//! ```sh
//! export PAYMENTS_DB=/tmp/payments.sqlite      # or DATABASE_URL=postgres://…, with --features postgres
//! cargo run --example payments &               # without REDIS_URL: the locks are in the process
//!
//! pay() {
//!   curl -si --retry 9 --retry-connrefused "http://127.0.0.1:3001$1" -H 'x-customer: ada' \
//!     -H 'idempotency-key: 6f1c9a3e' -H 'content-type: application/json' -d '{"amount":1200}'; echo
//! }
//! pay /once/payments; pay /unguarded/payments
//! kill -9 %1; cargo run --example payments &
//! pay /once/payments                           # the first answer, with `idempotency-replayed: true`
//! pay /unguarded/payments                      # a second payment
//! ```
//!
//! The records of `/unguarded/payments` are where the locks are, so they ended with the process. In a Redis (`REDIS_URL`)
//! they outlive it. Then the payment is taken again after a kill in the 20 ms before its record, in which a receipt is
//! mailed. The lock of the killed process ends after 5 s:
//!
//! ```sh
//! pay /unguarded/payments & sleep 0.02; kill -9 %1
//! ```
//!
//! `PORT`, `REDIS_URL`, `DATABASE_URL` (PostgreSQL) and `PAYMENTS_DB` (a SQLite file, without which the payments are in
//! memory) are optional.

mod http;
#[cfg(feature = "postgres")]
mod in_postgres;
mod in_sqlite;
mod serve;
#[path = "../sqlite.rs"]
mod sqlite;
mod store;

use std::env;
use std::error::Error;
use std::time::Duration;

use lock_core::{LockManager, once};

use crate::store::Store;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match env::var("DATABASE_URL") {
        #[cfg(feature = "postgres")]
        Ok(url) => run(in_postgres::open(&url).await?).await,
        #[cfg(not(feature = "postgres"))]
        Ok(_) => Err("DATABASE_URL needs `--features postgres`".into()),
        Err(_) => {
            let file = env::var_os("PAYMENTS_DB").map(Into::into);
            run(in_sqlite::open(file).await?).await
        }
    }
}

async fn run<S: Store>(store: S) -> Result<(), Box<dyn Error>> {
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(&url).await?;
    tokio::spawn(sweep(locks.clone(), store.clone()));
    serve::serve(locks, store).await
}

/// Deletes the records whose life is over, in one of all processes.
async fn sweep<S: Store>(locks: LockManager, store: S) -> Result<(), lock_core::Error> {
    let job = locks.every("sweep-payments", Duration::from_secs(60));
    let sweep = async || {
        if let Err(error) = once::sweep(&store).await {
            eprintln!("payments: {error}");
        }
    };
    job.run(|_| sweep()).await
}
