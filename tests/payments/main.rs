//! The example `payments` on a database whose steps can pause, or abort the process.
//!
//! Tests start it in place of the example. It reads the same variables, and two more:
//!
//! - `PAUSE_MS`: each step pauses for up to so many milliseconds.
//! - `ABORT_AT`: the process aborts at this step, counted from 1, without another word to anyone.

mod faulty;
#[path = "../../examples/payments/http.rs"]
mod http;
#[path = "../../examples/payments/in_postgres.rs"]
mod in_postgres;
#[path = "../../examples/payments/in_sqlite.rs"]
mod in_sqlite;
#[path = "../../examples/payments/serve.rs"]
mod serve;
#[path = "../../examples/sqlite.rs"]
mod sqlite;
#[path = "../../examples/payments/store.rs"]
mod store;

use std::env;
use std::error::Error;

use lock_core::LockManager;

use self::faulty::Faulty;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(&url).await?;
    match env::var("DATABASE_URL") {
        Ok(url) => serve::serve(locks, Faulty(in_postgres::open(&url).await?)).await,
        Err(_) => {
            let file = env::var_os("PAYMENTS_DB").map(Into::into);
            serve::serve(locks, Faulty(in_sqlite::open(file).await?)).await
        }
    }
}
