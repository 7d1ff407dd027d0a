//! A transaction that is no parameter.
//! Name the parameter.
#![allow(dead_code)]
use lock_core::Error;
use lock_core::idempotent;
use lock_core::once::{Database, Tx};

// instead: #[idempotent(key = "mail:<message>", remember = "7d", tx = tx)]
#[idempotent(key = "mail:<message>", remember = "7d", tx = transaction)]
async fn on_message<D: Database>(tx: &mut Tx<D>, message: u64) -> Result<u64, Error> {
    Ok(message + u64::from(format!("{tx:?}").is_empty()))
}

fn main() {}
